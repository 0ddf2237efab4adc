"""The paper's plan: noise on every layer, calibrated by its Theorem 1. Claimed, never certified.

    noise_std = smallest for which Theorem 1 claims (epsilon, delta) over epochs x batches steps

Steps are counted as if training never stopped early. The theorem's assumptions do not hold
(`docs/errata.md`): the label party knows the roots, gradients carry raw edges, validation and test
releases are not counted. So `certified_epsilon` is None at every epsilon.

Two readings of the paper exist for comparison only. They add less noise than the theorem needs, and
their claimed epsilon is what the theorem then claims:

| setting | what changes | claimed epsilon |
| --- | --- | --- |
| `noise_reading = "per-vector"` | noise_std / sqrt(width) in each coordinate | that of this noise |
| `spectral_norm = "none"` | weights of any norm, the same noise | inf: no sensitivity is known |
"""

import math
from dataclasses import replace
from typing import Literal

from vesper.mechanism.sampled import Aggregator, layer_sensitivity
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.baselines.gnn import GnnMethod
from vesper.method.baselines.sampled import num_layers_of
from vesper.method.noise_plan import budget_of
from vesper.method.settings import Config, batch_size_of
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.theorem_1 import PaperTraining, claimed_epsilon, noise_std_for


class PaperMethod(GnnMethod):
    """PMP-GIN, or PMP-GCN with truncated message passing; without noise the plain GIN or GCN."""

    def __init__(self, aggregator: Literal["gin", "gcn"]) -> None:
        super().__init__(f"paper-{aggregator}", aggregator=aggregator)

    def aggregator(self, config: Config) -> Aggregator:
        """Truncate GCN only if there is noise: truncation serves to reduce it."""
        if self.base == "gcn" and math.isfinite(config.privacy.epsilon):
            return "truncated-gcn"
        return self.base

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Compute the noise for which the paper claims the budget."""
        budget = budget_of(config.privacy, sizes)
        if budget is None:
            return super().noise_plan(config, sizes)
        sensitivity = layer_sensitivity(
            self.aggregator(config),
            min_degree=config.privacy.min_degree,
            max_degree=config.privacy.max_degree,
        )
        training = training_of(config, sizes, edge_sensitivity=sensitivity)
        plan = claimed_plan(training, budget, num_noises=training.num_layers)
        return as_read(plan, config, training)


def as_read(plan: NoisePlan, config: Config, training: PaperTraining) -> NoisePlan:
    """Change a plan to another reading of the paper, and its claim to what that is worth."""
    if config.privacy.noise_reading == "per-vector":
        noise_std = plan.noise_stds[0] / math.sqrt(config.run.width)
        claimed = claimed_epsilon(training=training, noise_std=noise_std, delta=plan.delta or 0.5)
        plan = replace(
            plan, noise_stds=(noise_std,) * len(plan.noise_stds), claimed_epsilon=claimed
        )
    if config.privacy.spectral_norm == "none":
        plan = replace(plan, claimed_epsilon=math.inf)
    return plan


def training_of(config: Config, sizes: PublicSizes, *, edge_sensitivity: float) -> PaperTraining:
    """Describe the run as the paper's accounting sees it, never stopped early."""
    batch_size = batch_size_of(config.run, num_train=sizes.num_train)
    return PaperTraining(
        num_train_nodes=sizes.num_train,
        batch_size=min(batch_size, sizes.num_train),
        max_degree=config.privacy.max_degree,
        num_layers=num_layers_of(config),
        num_epochs=config.run.epochs,
        edge_sensitivity=edge_sensitivity,
    )


def claimed_plan(training: PaperTraining, budget: Budget, *, num_noises: int) -> NoisePlan:
    """Make a plan with the smallest noise for which Theorem 1 claims the budget."""
    noise_std = noise_std_for(training=training, budget=budget)
    return NoisePlan(
        plan="paper",
        certified_epsilon=None,
        claimed_epsilon=claimed_epsilon(training=training, noise_std=noise_std, delta=budget.delta),
        delta=budget.delta,
        noise_stds=(noise_std,) * num_noises,
    )
