import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.accounting.renyi import compose, epsilon_of_rdp, gaussian_rdp, order_grid

rdp_accountant: Any = importlib.import_module("dp_accounting.rdp.rdp_privacy_accountant")

ORDERS = order_grid()


def gaussian_epsilon(noise_multiplier: float, delta: float, relative_step: float = 0.02) -> float:
    orders = order_grid(relative_step=relative_step)
    rdp = gaussian_rdp(orders=orders, noise_multiplier=noise_multiplier)
    return epsilon_of_rdp(orders=orders, rdp=rdp, delta=delta)[0]


@given(noise_multiplier=st.floats(0.1, 1e3), delta=st.floats(-12, -2).map(lambda p: 10**p))
def test_conversion_agrees_with_dp_accounting(noise_multiplier: float, delta: float) -> None:
    rdp = gaussian_rdp(orders=ORDERS, noise_multiplier=noise_multiplier)
    ours, order = epsilon_of_rdp(orders=ORDERS, rdp=rdp, delta=delta)
    theirs, their_order = rdp_accountant.compute_epsilon(ORDERS[1:], rdp[1:], delta)
    assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-15)
    assert order == their_order


@given(noise_multiplier=st.floats(0.05, 3e3), delta=st.floats(-12, -2).map(lambda p: 10**p))
def test_a_finer_grid_changes_nothing_that_matters(noise_multiplier: float, delta: float) -> None:
    fine = gaussian_epsilon(noise_multiplier, delta, relative_step=0.001)
    assert gaussian_epsilon(noise_multiplier, delta) == pytest.approx(fine, rel=1e-3)


@given(noise_multiplier=st.floats(0.1, 1e3), delta=st.floats(-12, -2).map(lambda p: 10**p))
def test_never_below_the_exact_conversion(noise_multiplier: float, delta: float) -> None:
    exact = epsilon_of(mu=1 / noise_multiplier, delta=delta)
    assert gaussian_epsilon(noise_multiplier, delta) >= exact * (1 - 1e-9)


@given(noise_multipliers=st.lists(st.floats(0.5, 50), min_size=1, max_size=6))
def test_composition_is_a_sum_in_any_order(noise_multipliers: list[float]) -> None:
    def composed(multipliers: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        rdps = [gaussian_rdp(orders=ORDERS, noise_multiplier=m) for m in multipliers]
        return np.asarray(compose(rdps, orders=ORDERS)).reshape(-1)

    one_by_one = composed(noise_multipliers)
    at_once = gaussian_rdp(
        orders=ORDERS,
        noise_multiplier=1 / math.sqrt(math.fsum(m**-2 for m in noise_multipliers)),
    )
    np.testing.assert_allclose(one_by_one, at_once, rtol=1e-12)
    np.testing.assert_allclose(one_by_one, composed(noise_multipliers[::-1]), rtol=1e-12)


def test_nothing_costs_nothing_and_no_noise_costs_everything() -> None:
    nothing = compose([], orders=ORDERS)
    assert epsilon_of_rdp(orders=ORDERS, rdp=nothing, delta=1e-6)[0] == 0.0
    assert gaussian_epsilon(0.0, 1e-6) == math.inf


def test_refuses_orders_at_one() -> None:
    orders = np.array([1.0, 2.0])
    with pytest.raises(InputError, match="orders"):
        epsilon_of_rdp(orders=orders, rdp=orders, delta=1e-6)
