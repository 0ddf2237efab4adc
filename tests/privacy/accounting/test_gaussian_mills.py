import importlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.privacy.accounting.gaussian import SWITCH, log_tail, mills, moments

mpmath: Any = importlib.import_module("mpmath")
mpmath.mp.dps = 60
UNIT = 2.0**-53


def exact_mills(t: float) -> Any:
    t = mpmath.mpf(t)
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(t**2 / 2) * mpmath.erfc(t / mpmath.sqrt(2))


@given(t=st.one_of(st.floats(-1, 3), st.floats(SWITCH, 60), st.floats(60, 1e6)))
def test_mills_ratio_is_accurate_to_64_units(t: float) -> None:
    # Beyond 1e3 the asymptotic series is exact far beyond double precision, and mpmath is slow.
    exact = exact_mills(t) if t < 1e3 else 1 / mpmath.mpf(t) * (1 - mpmath.mpf(t) ** -2)
    assert abs(mills(t) / exact - 1) < (64 * UNIT if t < 1e3 else 4 * UNIT + 4 * t**-4)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 1.49, 1.5, 2.0, 6.0, 38.0])
def test_moments_solve_their_integrals(t: float) -> None:
    values = moments(t, 9)
    for n in range(10):
        exact = mpmath.quad(
            lambda s, n=n: s**n * mpmath.exp(-t * s - s**2 / 2), [0, 1, 2, 4, 8, 16]
        )
        assert abs(values[n] / exact - 1) < 1e-11


def first_ratio(t: Any, steps: int, start: Any) -> Any:
    ratio = start
    for n in range(steps, 0, -1):
        ratio = n / (t + ratio)
    return ratio


def test_the_two_starts_of_the_continued_fraction_enclose_the_truth_tightly() -> None:
    # For a fixed number of steps the enclosure shrinks as t grows, so the smallest t for each
    # number of steps covers all t above SWITCH.
    for extra in range(int((21 / SWITCH) ** 2) + 1):
        t = max(mpmath.mpf(SWITCH), 21 / mpmath.sqrt(extra + 1))
        steps = 25 + extra
        low, high = sorted(first_ratio(t, steps, start) for start in (mpmath.mpf(0), mpmath.inf))
        assert low <= 1 / exact_mills(t) - t <= high
        assert high - low < 1e-17


@pytest.mark.parametrize("t", [-1.0, 0.0, 1.0, 10.0, 40.0, 200.0])
def test_log_tail_does_not_underflow(t: float) -> None:
    exact = mpmath.log(mpmath.erfc(t / mpmath.sqrt(2)) / 2)
    assert abs(log_tail(t) - exact) <= 1e-14 * max(1, abs(exact))
