import functools
import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.accounting.renyi import cgf_bound, printed_cgf_bound

mpmath: Any = importlib.import_module("mpmath")
rdp_accountant: Any = importlib.import_module("dp_accounting.rdp.rdp_privacy_accountant")

RATES = [1e-5, 6e-4, 0.0026, 0.0533, 0.3]
NOISE_MULTIPLIERS = [0.3, 0.5, 0.83, 1.0, 1.2, 1.9, 5.0, 20.0, 36.3, 150.0]


@functools.cache
def exact_terms(noise_multiplier: float, max_order: int) -> list[Any]:
    """term_2, ..., term_max_order of Wang et al., by alternating sums in 200 digits."""
    with mpmath.workdps(200):
        ratio = mpmath.exp(1 / mpmath.mpf(noise_multiplier) ** 2)
        raw = [mpmath.mpf(1)]  # E L^j = ratio^(j (j - 1) / 2)
        for j in range(max_order + 1):
            raw.append(raw[-1] * ratio**j)
        central = [
            mpmath.fsum((-1) ** i * math.comb(k, i) * raw[i] for i in range(k + 1))
            for k in range(0, max_order + 2, 2)
        ]
        terms = [min(4 * (raw[2] - 1), 2 * raw[2])]
        for j in range(3, max_order + 1):
            product = central[j // 2] * central[(j + 1) // 2]
            terms.append(min(4 * mpmath.sqrt(product), 2 * raw[j]))
        return terms


def exact_cgf(sampling_rate: float, noise_multiplier: float, order: int, max_order: int) -> Any:
    with mpmath.workdps(60):
        terms = exact_terms(noise_multiplier, max_order)
        rate = mpmath.mpf(sampling_rate)
        return mpmath.log1p(
            mpmath.fsum(math.comb(order, j) * rate**j * terms[j - 2] for j in range(2, order + 1))
        )


@pytest.mark.parametrize("sampling_rate", RATES)
@pytest.mark.parametrize("noise_multiplier", NOISE_MULTIPLIERS)
def test_agrees_with_200_digits(sampling_rate: float, noise_multiplier: float) -> None:
    cgf = cgf_bound(sampling_rate=sampling_rate, noise_multiplier=noise_multiplier, max_order=64)
    for order in (2, 3, 4, 7, 20, 63):
        exact = exact_cgf(sampling_rate, noise_multiplier, order, max_order=64)
        assert abs(cgf[order] / exact - 1) < 1e-11


@pytest.mark.parametrize("sampling_rate", RATES)
@pytest.mark.parametrize("noise_multiplier", NOISE_MULTIPLIERS)
def test_agrees_with_dp_accounting_where_its_differences_survive(
    sampling_rate: float, noise_multiplier: float
) -> None:
    cgf = cgf_bound(sampling_rate=sampling_rate, noise_multiplier=noise_multiplier, max_order=32)
    for order in (2, 3, 4, 5, 8, 17, 32):
        theirs = rdp_accountant._compute_rdp_sample_wor_gaussian_int(
            sampling_rate, noise_multiplier, order
        )
        assert cgf[order] == pytest.approx(theirs, rel=1e-6)


def test_dp_accounting_loses_its_differences_at_high_rates_and_orders() -> None:
    # Why the binomial sum is not used here: rounding alone makes it 12 times too large.
    theirs = rdp_accountant._compute_rdp_sample_wor_gaussian_int(0.3, 36.0, 128)
    ours = cgf_bound(sampling_rate=0.3, noise_multiplier=36.0, max_order=128)[128]
    assert abs(ours / exact_cgf(0.3, 36.0, 128, max_order=128) - 1) < 1e-11
    assert theirs > 10 * ours


@given(
    sampling_rate=st.floats(1e-5, 0.5),
    noise_multiplier=st.floats(0.4, 100),
    more=st.floats(1.01, 3),
)
def test_more_noise_or_a_smaller_sample_never_costs_more(
    sampling_rate: float, noise_multiplier: float, more: float
) -> None:
    base = cgf_bound(sampling_rate=sampling_rate, noise_multiplier=noise_multiplier, max_order=32)
    noisier = cgf_bound(
        sampling_rate=sampling_rate, noise_multiplier=noise_multiplier * more, max_order=32
    )
    rarer = cgf_bound(
        sampling_rate=sampling_rate / more, noise_multiplier=noise_multiplier, max_order=32
    )
    assert np.all(noisier <= base * (1 + 1e-12))
    assert np.all(rarer <= base * (1 + 1e-12))
    assert np.all(np.diff(base[1:]) >= 0)


def test_the_two_ends_of_the_sampling_rate() -> None:
    orders = np.arange(33)
    never = cgf_bound(sampling_rate=0.0, noise_multiplier=2.0, max_order=32)
    always = cgf_bound(sampling_rate=1.0, noise_multiplier=2.0, max_order=32)
    np.testing.assert_array_equal(never, 0)
    np.testing.assert_allclose(always, orders * (orders - 1) / 8)


def test_without_noise_there_is_no_bound() -> None:
    cgf = cgf_bound(sampling_rate=0.1, noise_multiplier=0.0, max_order=4)
    np.testing.assert_array_equal(cgf, [0, 0, math.inf, math.inf, math.inf])


def test_the_printed_terms_do_not_vanish_as_the_noise_grows() -> None:
    printed = printed_cgf_bound(sampling_rate=0.05, noise_multiplier=1e6, max_order=8)
    meant = cgf_bound(sampling_rate=0.05, noise_multiplier=1e6, max_order=8)
    floor = math.log1p(2 * math.fsum(math.comb(8, j) * 0.05**j for j in range(3, 9)))
    assert printed[8] == pytest.approx(floor, rel=1e-6)
    assert meant[8] < 1e-10


def test_refuses_a_rate_that_is_not_a_probability() -> None:
    with pytest.raises(InputError, match="sampling_rate"):
        cgf_bound(sampling_rate=1.5, noise_multiplier=1.0, max_order=8)
