"""The paper's plan beside a certified one: what it would claim, and what its noise is worth."""

import math
from dataclasses import dataclass

from vesper.privacy import theorem_1
from vesper.privacy.budget import Budget
from vesper.privacy.comparison import true_epsilon_lower_bound


@dataclass(frozen=True, kw_only=True)
class PaperSizes:
    """What the paper's accountant asks for; without training nodes nothing can be said."""

    num_train_nodes: int
    batch_size: int
    max_degree: int
    num_epochs: int


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """The paper's plan at the same claimed epsilon, and what its noise is worth in truth.

    Args:
        epsilon: what it claims, the certified plan's epsilon.
        noise_std: the noise for which it claims that.
        noise_ratio: that noise over the certified plan's.
        true_epsilon_lower_bound: what that noise is worth, at least; exact for one layer.
        epsilon_at_certified_noise: what it would claim for the certified plan's noise; None where
            its orders end too soon to say.
    """

    epsilon: float
    noise_std: float
    noise_ratio: float
    true_epsilon_lower_bound: float
    epsilon_at_certified_noise: float | None


def claimed_beside(
    *, epsilon: float, noise_std: float, delta: float, num_layers: int, sizes: PaperSizes
) -> Claimed | str:
    """Ask the paper's accountant for the same epsilon, or say why it is not asked."""
    if not sizes.num_train_nodes:
        return "it needs the number of training nodes"
    if not 0 < epsilon < math.inf:
        return f"it has no noise for an epsilon of {epsilon:g}"
    training = theorem_1.PaperTraining(
        num_train_nodes=sizes.num_train_nodes,
        batch_size=min(sizes.batch_size, sizes.num_train_nodes),
        max_degree=sizes.max_degree,
        num_layers=num_layers,
        num_epochs=sizes.num_epochs,
    )
    claimed = theorem_1.noise_std_for(
        training=training, budget=Budget(epsilon=epsilon, delta=delta)
    )
    if not theorem_1.orders_suffice(training=training, noise_std=claimed, delta=delta):
        return (
            f"for an epsilon as small as {epsilon:.3g} it would need Renyi orders above "
            f"{theorem_1.LAST_MAX_ORDER}, where its implementations end"
        )
    return Claimed(
        epsilon=epsilon,
        noise_std=claimed,
        noise_ratio=claimed / noise_std,
        true_epsilon_lower_bound=true_epsilon_lower_bound(
            noise_std=claimed, num_epochs=sizes.num_epochs, delta=delta
        ),
        epsilon_at_certified_noise=(
            theorem_1.claimed_epsilon(training=training, noise_std=noise_std, delta=delta)
            if theorem_1.orders_suffice(training=training, noise_std=noise_std, delta=delta)
            else None
        ),
    )
