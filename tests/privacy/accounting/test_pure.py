"""Claim PURE-TO-GDP: every epsilon-DP mechanism is mu-GDP for this mu, and for no smaller one."""

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import delta_of
from vesper.privacy.accounting.participation import charge_of, mu_for
from vesper.privacy.accounting.pure import charge_of_pure, mu_of_pure

mpmath: Any = importlib.import_module("mpmath")
mpmath.mp.dps = 60

EPSILONS = [1e-9, 1e-3, 0.1, 0.5, 0.999, 1.0, 1.001, 3.0, 10.0, 40.0, 800.0]


def gap(epsilon: float, mu: float) -> float:
    """Smallest f - G_mu over false positive rates; negative when mu-GDP does not follow."""
    kink = 1 / (1 + math.exp(epsilon))
    rates = np.unique(np.concatenate([np.geomspace(1e-12, 0.5, 4000), [kink]]))
    rates = np.concatenate([rates, 1 - rates])
    pure = np.maximum(0, np.maximum(1 - np.exp(epsilon) * rates, np.exp(-epsilon) * (1 - rates)))
    return float(np.min(pure - ndtr(-ndtri(rates) - mu)))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_trade_off_lies_above_and_one_percent_less_is_caught(epsilon: float) -> None:
    mu = mu_of_pure(epsilon=epsilon)
    assert gap(epsilon, mu) > -1e-14
    assert gap(epsilon, 0.99 * mu) < -1e-7


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rounds_up_by_very_little(epsilon: float) -> None:
    kink = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))

    def tail(mu: Any) -> Any:
        return mpmath.erfc(mpmath.mpf(mu) / mpmath.sqrt(8)) / 2

    mu = mu_of_pure(epsilon=epsilon)
    assert tail(mu) <= kink
    assert tail(mu * (1 - 1e-12)) > kink


@given(epsilon=st.floats(0.05, 3), noise_std=st.floats(0.4, 5), level=st.floats(0.05, 5))
def test_a_count_and_a_release_together_cost_no_more_than_the_filter_says(
    epsilon: float, noise_std: float, level: float
) -> None:
    # The worst epsilon-DP event, randomised response on one bit, next to a Gaussian release.
    release_mu = math.sqrt(2) / noise_std
    spent = charge_of_pure(epsilon=epsilon) + charge_of(noise_std=noise_std)
    keep = 1 / (1 + math.exp(-epsilon))
    attained = 0.0
    for probability, loss in ((keep, epsilon), (1 - keep, -epsilon)):
        left = level - loss
        attained += probability * float(
            ndtr(-left / release_mu + release_mu / 2)
            - math.exp(left) * ndtr(-left / release_mu - release_mu / 2)
        )
    assert attained <= delta_of(mu=mu_for(spent=spent), epsilon=level) + 1e-14


@given(epsilon=st.floats(1e-6, 50), more=st.floats(1.001, 4))
def test_grows_with_epsilon_between_its_two_asymptotes(epsilon: float, more: float) -> None:
    mu = mu_of_pure(epsilon=epsilon)
    assert mu < mu_of_pure(epsilon=epsilon * more)
    assert mu <= math.sqrt(math.pi / 2) * epsilon * (1 + 1e-12)
    assert mu <= math.sqrt(8 * epsilon)


def test_edge_cases() -> None:
    assert mu_of_pure(epsilon=0.0) == 0.0
    assert mu_of_pure(epsilon=math.inf) == math.inf
    with pytest.raises(InputError, match="epsilon"):
        mu_of_pure(epsilon=-0.1)
