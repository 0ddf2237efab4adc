"""Renyi differential privacy: the Gaussian mechanism, composition, conversion.

    rdp(order) = order / (2 noise_multiplier^2)                    Gaussian mechanism (Mironov 2017)
    rdp of a composition = sum of the rdp                          at each order
    epsilon = rdp - log(delta order) / (order - 1) + log(1 - 1 / order), best order
                                                                   (Balle et al. 2020)

The certified plan does not need it (`gaussian` is exact and asks for 3 to 7 % less noise); the
paper's accountant is built on it.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vesper.privacy.expect import expect, expect_delta, expect_not_negative

Orders = NDArray[np.float64]
"""Renyi orders, each above 1."""

SMALLEST_ORDER = 1.01  # closer to 1 the conversion is useless and not stable


def order_grid(*, largest: float = 1e6, relative_step: float = 0.02) -> Orders:
    """Orders from 1.01 up whose distances from 1 grow by `relative_step`.

    Around its best order the epsilon behaves like a/(order - 1) + b (order - 1), so missing the
    best by half a step costs a relative (relative_step / 2)^2 / 2 = 5e-5 at the default.
    """
    steps = math.ceil(math.log((largest - 1) / (SMALLEST_ORDER - 1)) / math.log1p(relative_step))
    grid: Orders = 1 + np.geomspace(SMALLEST_ORDER - 1, largest - 1, steps + 1)
    return grid


def gaussian_rdp(*, orders: Orders, noise_multiplier: float) -> NDArray[np.float64]:
    """Renyi divergence of the Gaussian mechanism at each order; inf without noise."""
    expect_not_negative("noise_multiplier", noise_multiplier)
    if noise_multiplier == 0:
        return np.full_like(orders, np.inf)
    return orders / (2 * noise_multiplier**2)


def compose(rdps: Iterable[NDArray[np.float64]], *, orders: Orders) -> NDArray[np.float64]:
    """Renyi divergence of several adaptive mechanisms: the sum, 0 for none."""
    return sum(rdps, start=np.zeros_like(orders))


def epsilon_of_rdp(
    *, orders: Orders, rdp: NDArray[np.float64], delta: float
) -> tuple[float, float]:
    """Smallest epsilon over all orders, and the order that gives it (Balle et al. 2020).

    An order whose divergence is so small that delta^2 > 1 - exp(-rdp) gives epsilon 0
    (Bretagnolle and Huber: total variation <= sqrt(1 - exp(-KL)), and KL <= rdp).
    """
    expect_delta(delta)
    expect(
        bool(np.all(orders >= SMALLEST_ORDER)),
        name="orders",
        wanted=f"orders >= {SMALLEST_ORDER}",
        got=float(np.min(orders)),
        remedy="take them from order_grid()",
    )
    epsilons = rdp + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    epsilons[delta**2 + np.expm1(-rdp) > 0] = 0.0
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), float(orders[best])
