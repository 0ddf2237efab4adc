"""Claim G-CONVERT: closed form against 60 digits, and the safe side at every point."""

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import (
    delta_of,
    epsilon_at,
    epsilon_of,
    log_delta_of,
    mu_at,
    mu_of,
)

mpmath: Any = importlib.import_module("mpmath")
mpmath.mp.dps = 60
dp_accounting: Any = importlib.import_module("dp_accounting")

EPSILONS = [float(e) for e in np.geomspace(1e-3, 1e3, 13)]
LOG_DELTAS = [math.log(10) * k for k in (-1, -3, -6, -12, -30, -100, -300, -3000)]
TOLERANCE = 1e-9
"""Documented tolerance. Measured: 1.1e-11 for delta, 2e-13 for mu, and for epsilon if
delta <= 1e-5."""


def exact_log_delta(mu: float, epsilon: float) -> Any:
    """The textbook formula, with digits to spare for cancellation."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)

    def tail(t: Any) -> Any:
        return mpmath.erfc(t / mpmath.sqrt(2)) / 2

    x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return mpmath.log(tail(x) - mpmath.exp(epsilon) * tail(y))


@pytest.mark.parametrize("log_delta", LOG_DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_is_safe_and_tight(epsilon: float, log_delta: float) -> None:
    mu = mu_at(epsilon=epsilon, log_delta=log_delta)
    assert exact_log_delta(mu, epsilon) <= log_delta
    assert exact_log_delta(mu * (1 + TOLERANCE), epsilon) > log_delta


@pytest.mark.parametrize("log_delta", LOG_DELTAS)
@pytest.mark.parametrize("mu", [float(m) for m in np.geomspace(1e-5, 40, 10)])
def test_epsilon_is_safe_and_tight(mu: float, log_delta: float) -> None:
    epsilon = epsilon_at(mu=mu, log_delta=log_delta)
    if epsilon == 0:
        assert mpmath.log(mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))) <= log_delta
    else:
        assert exact_log_delta(mu, epsilon) <= log_delta
        assert exact_log_delta(mu, epsilon * (1 - TOLERANCE)) > log_delta


@given(
    mu=st.floats(-6, 2).map(lambda power: 10**power),
    ratio=st.one_of(st.floats(0, 1), st.floats(0, 36)),
)
def test_delta_is_never_too_small_and_accurate_to_eleven_digits(mu: float, ratio: float) -> None:
    epsilon = ratio * mu
    excess = log_delta_of(mu=mu, epsilon=epsilon) - exact_log_delta(mu, epsilon)
    assert 0 <= excess < 2e-11
    delta = delta_of(mu=mu, epsilon=epsilon)
    assert mpmath.log(delta) >= exact_log_delta(mu, epsilon)
    assert mpmath.log(delta) < exact_log_delta(mu, epsilon) + 1e-10


def test_rounding_uses_up_less_than_a_tenth_of_the_margin() -> None:
    for mu in np.geomspace(1e-5, 5, 40):
        for ratio in np.linspace(0, 37, 20):
            mu_, epsilon = float(mu), float(ratio * mu)
            x = epsilon / mu_ - mu_ / 2
            margin = 2.0**-43 + 2.0**-48 * (abs(x) + 4) * (epsilon / mu_ + mu_ + 4)
            excess = log_delta_of(mu=mu_, epsilon=epsilon) - exact_log_delta(mu_, epsilon)
            assert 0.9 * margin < excess < 1.1 * margin


def test_the_textbook_formula_in_floats_would_have_failed() -> None:
    # Why there is a series: at small mu the two terms agree in almost all digits.
    mu, epsilon = 1e-8, 3e-8
    x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    plain = (math.erfc(x / math.sqrt(2)) - math.exp(epsilon) * math.erfc(y / math.sqrt(2))) / 2
    exact = mpmath.exp(exact_log_delta(mu, epsilon))
    assert abs(plain / exact - 1) > 1e-9
    assert abs(delta_of(mu=mu, epsilon=epsilon) / exact - 1) < 2e-11


@pytest.mark.parametrize(("sigma", "delta"), [(0.3, 1e-5), (1.0, 1e-6), (8.0, 1e-8), (50.0, 1e-4)])
def test_agrees_with_dp_accounting(sigma: float, delta: float) -> None:
    oracle = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert epsilon_of(mu=1 / sigma, delta=delta) == pytest.approx(oracle, rel=1e-6)


@given(
    mu=st.floats(1e-3, 20), more=st.floats(1.001, 3), delta=st.floats(-12, -1).map(lambda p: 10**p)
)
def test_more_mu_costs_more_and_more_delta_costs_less(mu: float, more: float, delta: float) -> None:
    assert epsilon_of(mu=mu * more, delta=delta) >= epsilon_of(mu=mu, delta=delta)
    assert epsilon_of(mu=mu, delta=min(0.9, delta * more)) <= epsilon_of(mu=mu, delta=delta)


@given(epsilon=st.floats(1e-3, 1e3), delta=st.floats(-12, -1).map(lambda p: 10**p))
def test_the_round_trip_never_gains(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon=epsilon, delta=delta)
    back = epsilon_of(mu=mu, delta=delta)
    assert epsilon * (1 - 1e-9) - 1e-11 < back <= epsilon * (1 + 2.0**-50)
    assert delta_of(mu=mu, epsilon=epsilon) <= delta * (1 + 1e-12)


def test_edge_cases() -> None:
    assert delta_of(mu=0.0, epsilon=1.0) == 0.0
    assert epsilon_of(mu=0.0, delta=1e-6) == 0.0
    assert epsilon_of(mu=math.inf, delta=1e-6) == math.inf
    assert delta_of(mu=math.inf, epsilon=1.0) == 1.0
    assert mu_of(epsilon=math.inf, delta=1e-6) == math.inf
    assert epsilon_of(mu=1e-9, delta=1e-6) == 0.0  # total variation alone is below delta
    assert delta_of(mu=1e-3, epsilon=10.0) > 0.0  # below the smallest float, yet not 0
    assert mu_of(epsilon=0.0, delta=1e-3) == pytest.approx(2.5066e-3, rel=1e-4)


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-200, 1.0), (1e99, 1e3), (1.0, 1e300), (1e4, 5e7)])
def test_absurd_numbers_neither_overflow_nor_become_free(mu: float, epsilon: float) -> None:
    assert 0.0 < delta_of(mu=mu, epsilon=epsilon) <= 1.0
    assert epsilon_of(mu=mu, delta=1e-6) >= 0.0
    assert 0.0 < mu_of(epsilon=epsilon, delta=1e-6) < math.inf


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_refuses_invalid_numbers(bad: float) -> None:
    with pytest.raises(InputError, match="Expected mu >= 0"):
        delta_of(mu=bad, epsilon=1.0)
    with pytest.raises(InputError, match="Expected epsilon >= 0"):
        delta_of(mu=1.0, epsilon=bad)
    with pytest.raises(InputError, match="Expected 0 < delta < 1"):
        epsilon_of(mu=1.0, delta=bad)
    for log_delta in (0.0, -1e13, math.nan):
        with pytest.raises(InputError, match="log_delta"):
            mu_at(epsilon=1.0, log_delta=log_delta)
