"""A plan before there is data: noise, what each release costs, what one more would tell.

    releases  = hops * refreshes                       each to every node, each at noise_std
    mu        = sqrt(2 releases) / noise_std           (claims R-SUM, L-FILTER)
    accuracy  = Phi(mu / 2)                            of the best guess whether one edge exists

The last line is the most a label party can do who knows everything but the edge.
"""

import math
from dataclasses import dataclass

from vesper.errors import InputError
from vesper.privacy import theorem_1
from vesper.privacy.budget import Budget
from vesper.privacy.comparison import true_epsilon_lower_bound
from vesper.privacy.events import LARGEST_NOISE, SMALLEST_NOISE
from vesper.privacy.participation import charge_of, epsilon_for, mu_for, noise_std_for

MOST_PHASES = 12
"""A plan with more releases lists the first ones and the last."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What holds after `releases` releases of `noise_std` to the same nodes."""

    releases: int
    noise_std: float
    mu: float
    epsilon: float
    delta: float
    attack_accuracy: float


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """The paper's plan at the same claimed epsilon, and what its noise is worth in truth."""

    epsilon: float
    noise_std: float
    noise_ratio: float
    true_epsilon_lower_bound: float


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Bytes between the parties, tensors only."""

    per_batch_each_way: int
    training_each_way: int
    evaluation: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All of it."""

    certified: Guarantee
    phases: tuple[Guarantee, ...]
    one_more_release: Guarantee
    claimed: Claimed | None
    wire: Wire | None


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Public sizes of a training; what is 0 is unknown and leaves its part of the plan out."""

    num_nodes: int = 0
    num_train_nodes: int = 0
    num_classes: int = 2
    batch_size: int = 256
    epochs: int = 5
    max_degree: int = 20


def guarantee(*, noise_std: float, releases: int, delta: float) -> Guarantee:
    """Account for releases of equal noise."""
    mu = mu_for(spent=releases * charge_of(noise_std=noise_std))
    return Guarantee(
        releases=releases,
        noise_std=noise_std,
        mu=mu,
        epsilon=epsilon_for(noise_std=noise_std, releases=releases, delta=delta),
        delta=delta,
        attack_accuracy=math.erfc(-mu / 2 / math.sqrt(2)) / 2,
    )


def make_plan(
    *,
    delta: float,
    hops: int,
    refreshes: int = 1,
    epsilon: float | None = None,
    noise_std: float | None = None,
    sizes: Sizes | None = None,
) -> Plan:
    """Plan from a budget to the noise, or from the noise to epsilon."""
    releases = hops * refreshes
    if noise_std is not None and not SMALLEST_NOISE <= noise_std <= LARGEST_NOISE:
        raise InputError(
            f"Expected noise_std between {SMALLEST_NOISE:g} and {LARGEST_NOISE:g}, "
            f"got {noise_std:g}."
        )
    if noise_std is None:
        if epsilon is None:
            raise TypeError("expected epsilon or noise_std")
        noise_std = noise_std_for(budget=Budget(epsilon=epsilon, delta=delta), releases=releases)
        if noise_std > LARGEST_NOISE:
            raise InputError(
                f"This budget needs a noise of {noise_std:.3g} a unit message for {releases} "
                f"releases, the most that is drawn is {LARGEST_NOISE:g}; use a larger epsilon or "
                f"fewer releases."
            )
    sizes = sizes or Sizes()
    whole = guarantee(noise_std=noise_std, releases=releases, delta=delta)
    return Plan(
        certified=whole,
        phases=tuple(
            guarantee(noise_std=noise_std, releases=k, delta=delta)
            for k in (*range(1, min(releases, MOST_PHASES)), releases)
        ),
        one_more_release=guarantee(noise_std=noise_std, releases=releases + 1, delta=delta),
        claimed=_claimed(whole, hops, sizes) if sizes.num_train_nodes else None,
        wire=_wire(hops, sizes) if sizes.num_train_nodes else None,
    )


def _claimed(whole: Guarantee, hops: int, sizes: Sizes) -> Claimed:
    training = theorem_1.PaperTraining(
        num_train_nodes=sizes.num_train_nodes,
        batch_size=min(sizes.batch_size, sizes.num_train_nodes),
        max_degree=sizes.max_degree,
        num_layers=hops,
        num_epochs=sizes.epochs,
    )
    budget = Budget(epsilon=whole.epsilon, delta=whole.delta)
    noise_std = theorem_1.noise_std_for(training=training, budget=budget)
    return Claimed(
        epsilon=whole.epsilon,
        noise_std=noise_std,
        noise_ratio=noise_std / whole.noise_std,
        true_epsilon_lower_bound=true_epsilon_lower_bound(
            noise_std=noise_std, num_epochs=sizes.epochs, delta=whole.delta
        ),
    )


def _wire(hops: int, sizes: Sizes) -> Wire:
    """Float32 logits of every stage for each root, and gradients of the same shape."""
    row = 4 * sizes.num_classes * (hops + 1)
    stages = hops + 1
    rest = max(sizes.num_nodes - sizes.num_train_nodes, 0)
    return Wire(
        per_batch_each_way=row * min(sizes.batch_size, sizes.num_train_nodes),
        training_each_way=row * sizes.num_train_nodes * sizes.epochs * stages,
        evaluation=row * rest * stages,
    )
