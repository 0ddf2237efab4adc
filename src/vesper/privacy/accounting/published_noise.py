"""The accountant of GAP and ProGAP as published; its results are *claimed*, never certified.

    rdp(order) = releases order / (2 noise_std^2)        assumes that one edge moves a sum by 1
    epsilon    = conversion of Balle et al. (`renyi`)

An undirected edge moves two rows, so the sensitivity is sqrt 2 (claim R-SUM): the published
epsilon 4 is really 5.5 to 5.9 (`true_epsilon_of`).
"""

import math
from collections.abc import Sequence

from vesper.privacy.accounting.budget import Budget, require_finite
from vesper.privacy.accounting.participation import charge_of, spent_epsilon
from vesper.privacy.accounting.renyi import epsilon_of_rdp, gaussian_rdp, order_grid
from vesper.privacy.accounting.safe_numbers import bracket, expect_count, safe_side

PUBLISHED_SENSITIVITY = 1.0


def published_epsilon(*, noise_std: float, releases: int, delta: float) -> float:
    """Epsilon that the authors would claim for this noise."""
    orders = order_grid()
    multiplier = noise_std / (PUBLISHED_SENSITIVITY * math.sqrt(releases))
    rdp = gaussian_rdp(orders=orders, noise_multiplier=multiplier)
    return epsilon_of_rdp(orders=orders, rdp=rdp, delta=delta)[0]


def published_noise_std(*, budget: Budget, releases: int) -> float:
    """Smallest noise for which the authors claim the budget.

    >>> round(published_noise_std(budget=Budget(epsilon=1.0, delta=1e-6), releases=2), 1)
    6.4
    """
    expect_count("releases", releases, at_least=1)
    epsilon, delta = require_finite(budget).epsilon, budget.delta

    def holds(noise_std: float) -> bool:
        return published_epsilon(noise_std=noise_std, releases=releases, delta=delta) <= epsilon

    safe, unsafe = bracket(holds, start=1.0, factor=2.0)
    return safe_side(holds, safe=safe, unsafe=unsafe)


def true_epsilon_of(*, noise_stds: Sequence[float], delta: float) -> float:
    """Epsilon that this noise provably gives for releases of unit-norm messages to all nodes."""
    spent = math.fsum(charge_of(noise_std=noise_std) for noise_std in noise_stds)
    return spent_epsilon(spent=spent * (1 + 2.0**-50), delta=delta)
