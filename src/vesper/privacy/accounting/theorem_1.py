"""The paper's accountant: everything it returns is *claimed*, nothing is certified.

    participation_rate = 1 - C(N_T - N_e, B) / C(N_T, B),    N_e = 2 (1 + D + ... + D^{L-1})
    noise_multiplier   = noise_std / sqrt(sum over layers of edge_sensitivity^2)
    rdp(order)         = num_steps * bound of Wang et al. (`renyi.cgf_bound`)
    epsilon            = conversion of Balle et al. (`renyi`)

It assumes roots that the label party does not know, uniform edge sampling and *replace one*; none
of the three is true (`docs/errata.md`). The formula in the paper has a misprint; the bound that is
meant, and used here, is the one of dp-accounting.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.privacy.accounting.budget import Budget, NonPrivate, require_finite
from vesper.privacy.accounting.renyi import cgf_bound, epsilon_of_rdp, order_grid
from vesper.privacy.accounting.safe_numbers import (
    bracket,
    expect_count,
    expect_delta,
    expect_not_negative,
    expect_positive,
    safe_side,
)

FIRST_MAX_ORDER, LAST_MAX_ORDER = 64, 1024
EDGE_OF_ORDERS = 0.9  # a best order above this share of the largest may not be a true minimum
NOISE_GAP = 1e-6
SMALLEST_MULTIPLIER = 1e-100  # its square is still a float; anything below counts as no noise
ORDER_STEP = 0.02


@dataclass(frozen=True, kw_only=True)
class PaperTraining:
    """Public sizes of one training run as the paper describes it.

    `edge_sensitivity` is that of one layer: sqrt(2) for GIN with operator norms of 1.
    """

    num_train_nodes: int
    batch_size: int
    max_degree: int
    num_layers: int
    num_epochs: int
    edge_sensitivity: float = math.sqrt(2)

    def __post_init__(self) -> None:
        expect_count("num_train_nodes", self.num_train_nodes, at_least=self.batch_size)
        expect_count("num_epochs", self.num_epochs, at_least=0)
        expect_count("batch_size", self.batch_size, at_least=1)
        expect_count("max_degree", self.max_degree, at_least=1)
        expect_count("num_layers", self.num_layers, at_least=1)
        expect_positive("edge_sensitivity", self.edge_sensitivity)

    @property
    def participation_rate(self) -> float:
        """Gamma of Theorem 1; see `participation_rate`."""
        return participation_rate(
            num_train_nodes=self.num_train_nodes,
            batch_size=self.batch_size,
            max_degree=self.max_degree,
            num_layers=self.num_layers,
        )

    @property
    def num_steps(self) -> int:
        """Number of batches in all epochs; the last batch of an epoch may be smaller."""
        return self.num_epochs * math.ceil(self.num_train_nodes / self.batch_size)

    @property
    def sensitivity(self) -> float:
        """Edge sensitivity of all layers together."""
        return self.edge_sensitivity * math.sqrt(self.num_layers)


def max_roots_touched(*, max_degree: int, num_layers: int) -> int:
    """N_e: number of roots whose output one edge can move, 2 (1 + D + ... + D^{L-1}).

    >>> max_roots_touched(max_degree=20, num_layers=2)
    42
    """
    expect_count("max_degree", max_degree, at_least=1)
    expect_count("num_layers", num_layers, at_least=1)
    roots = 0
    for _ in range(num_layers):
        roots = 1 + max_degree * roots
    return 2 * roots


def participation_rate(
    *, num_train_nodes: int, batch_size: int, max_degree: int, num_layers: int
) -> float:
    """Gamma of Theorem 1: probability that a batch holds a root that a given edge can move.

    >>> round(
    ...     participation_rate(
    ...         num_train_nodes=196_615, batch_size=256, max_degree=20, num_layers=2
    ...     ),
    ...     6,
    ... )
    0.053256
    """
    expect_count("batch_size", batch_size, at_least=1)
    touched = max_roots_touched(max_degree=max_degree, num_layers=num_layers)
    if touched + batch_size > num_train_nodes:
        return 1.0
    # C(N - a, b) / C(N, b) is symmetric in a and b: multiply over the smaller one.
    few, many = sorted((touched, batch_size))
    return -math.expm1(math.fsum(math.log1p(-many / (num_train_nodes - i)) for i in range(few)))


def claimed_epsilon(*, training: PaperTraining, noise_std: float, delta: float) -> float:
    """Epsilon that the paper claims for this noise; inf without noise, 0 without a step.

    Orders go up to 1024, as in dp-accounting. Below epsilon 0.05 the best order may be larger, and
    the epsilon returned is then larger than necessary (`orders_suffice`).
    """
    return _claimed(training, noise_std, delta)[0]


def orders_suffice(*, training: PaperTraining, noise_std: float, delta: float) -> bool:
    """Whether epsilon comes from the best Renyi order and not from the largest one tried."""
    epsilon, best_order = _claimed(training, noise_std, delta)
    return 0 < epsilon < math.inf and best_order < EDGE_OF_ORDERS * LAST_MAX_ORDER


def _claimed(training: PaperTraining, noise_std: float, delta: float) -> tuple[float, float]:
    """Epsilon and its best order."""
    expect_not_negative("noise_std", noise_std)
    expect_delta(delta)
    if training.num_steps == 0:
        return 0.0, 1.0
    noise_multiplier = noise_std / training.sensitivity
    if noise_multiplier < SMALLEST_MULTIPLIER:
        return math.inf, 1.0
    max_order = FIRST_MAX_ORDER
    while True:
        cgf = training.num_steps * cgf_bound(
            sampling_rate=training.participation_rate,
            noise_multiplier=noise_multiplier,
            max_order=max_order,
        )
        epsilon, best_order = best_epsilon(cgf=cgf, delta=delta)
        if best_order < EDGE_OF_ORDERS * max_order or max_order == LAST_MAX_ORDER:
            return epsilon, best_order
        max_order *= 2


def best_epsilon(
    *, cgf: NDArray[np.float64], delta: float, relative_step: float = ORDER_STEP
) -> tuple[float, float]:
    """Epsilon and best order from the cgf at whole orders, interpolated linearly in between."""
    orders = _order_grid(len(cgf) - 1, relative_step)
    rdp = np.interp(orders, np.arange(len(cgf)), cgf) / (orders - 1)
    return epsilon_of_rdp(orders=orders, rdp=rdp, delta=delta)


def noise_std_for(*, training: PaperTraining, budget: Budget | NonPrivate) -> float:
    """Noise for which the paper claims the budget, within 1e-6 of the smallest, never exceeding it.

    It is above 0 for every `Budget`; only `NonPrivate` gives 0.

    Raises:
        InputError: epsilon is infinite, or there are no epochs.
    """
    expect_count("num_epochs", training.num_epochs, at_least=1)
    if isinstance(budget, NonPrivate):
        return 0.0
    epsilon, delta = require_finite(budget).epsilon, budget.delta

    def holds(noise_std: float) -> bool:
        return claimed_epsilon(training=training, noise_std=noise_std, delta=delta) <= epsilon

    safe, unsafe = bracket(holds, start=training.sensitivity, factor=2.0)
    return safe_side(holds, safe=safe, unsafe=unsafe, relative_gap=NOISE_GAP)


@functools.lru_cache(maxsize=16)
def _order_grid(max_order: int, relative_step: float) -> NDArray[np.float64]:
    """All whole orders, where the interpolated cgf has its kinks, and a fine grid in between."""
    return np.union1d(
        order_grid(largest=max_order, relative_step=relative_step), np.arange(2, max_order + 1)
    )
