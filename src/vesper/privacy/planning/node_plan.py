"""Noise that protects a whole node, by both accountants, next to the paper's theorem about it.

    sensitivity, all hops:   certified   sqrt(hops (D + c^2)),   c = sqrt D      (claim N-NODE)
                             claimed     sqrt(hops) (1 + sqrt D sqrt 2)          (as printed)
                             true        sqrt(hops (D + D^2))                    for the same

    exact:   epsilon of mu = sensitivity / noise_std      (claim G-CONVERT)
    Renyi:   epsilon of rdp = order sensitivity^2 / (2 noise_std^2), as the paper counts

Noise is per unit-norm message and does not include rounding on the grid, which adds a little to it
in a run. The paper does not clip: the node's own row moves by up to D before the noise (errata,
entry 14).
"""

import math
from dataclasses import dataclass

from vesper.privacy.accounting.budget import Budget, require_finite
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.accounting.participation import ROUND_UP, node_rows, noise_std_for
from vesper.privacy.accounting.renyi import epsilon_of_rdp, gaussian_rdp, order_grid
from vesper.privacy.accounting.safe_numbers import bracket, expect_count, safe_side

NOISE_GAP = 1e-9


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """Noise for one budget.

    Args:
        epsilon: epsilon of the budget.
        delta: delta of the budget.
        max_degree: D, a public bound on the degree.
        noise_std: noise that certifies the budget by exact conversion; rows are clipped to sqrt D.
        renyi_noise_std: noise that certifies the budget through Renyi orders.
        claimed_noise_std: noise for which the paper's theorem claims the budget.
        true_epsilon: epsilon that `claimed_noise_std` really gives.
    """

    epsilon: float
    delta: float
    max_degree: int
    noise_std: float
    renyi_noise_std: float
    claimed_noise_std: float
    true_epsilon: float


def plan_for_nodes(*, budget: Budget, max_degree: int, hops: int) -> NodePlan:
    """Find the noise by both accountants, and the noise that the paper would use.

    Raises:
        InputError: epsilon is infinite, or there are no hops, or the degree is below 1.
    """
    expect_count("max_degree", max_degree, at_least=1)
    expect_count("hops", hops, at_least=1)
    rows = node_rows(max_degree=max_degree, row_norm=math.sqrt(max_degree))
    claimed = math.sqrt(hops) * claimed_sensitivity(max_degree=max_degree)
    noise_claimed = renyi_noise_std(budget=budget, sensitivity=claimed)
    true = math.sqrt(hops * node_rows(max_degree=max_degree, row_norm=float(max_degree)))
    return NodePlan(
        epsilon=budget.epsilon,
        delta=budget.delta,
        max_degree=max_degree,
        noise_std=noise_std_for(budget=budget, releases=hops, rows=rows),
        renyi_noise_std=renyi_noise_std(
            budget=budget, sensitivity=math.sqrt(hops * rows) * ROUND_UP
        ),
        claimed_noise_std=noise_claimed,
        true_epsilon=epsilon_of(mu=true / noise_claimed, delta=budget.delta),
    )


def claimed_sensitivity(*, max_degree: int) -> float:
    """Node sensitivity of one GIN layer as printed in the paper; refuted for degrees of 3 or more.

    >>> round(claimed_sensitivity(max_degree=20), 2)
    7.32
    """
    return 1 + math.sqrt(max_degree) * math.sqrt(2)


def renyi_noise_std(*, budget: Budget, sensitivity: float) -> float:
    """Smallest noise for which the Renyi accountant does not exceed the budget."""
    epsilon, delta = require_finite(budget).epsilon, budget.delta
    orders = order_grid()

    def holds(noise_std: float) -> bool:
        rdp = gaussian_rdp(orders=orders, noise_multiplier=noise_std / sensitivity)
        return epsilon_of_rdp(orders=orders, rdp=rdp, delta=delta)[0] <= epsilon

    safe, unsafe = bracket(holds, start=sensitivity, factor=2.0)
    return safe_side(holds, safe=safe, unsafe=unsafe, relative_gap=NOISE_GAP)
