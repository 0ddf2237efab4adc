"""VFGNN: noise on the normalised output of all layers, none inside.

| accounting | sensitivity | steps | claimed epsilon |
| --- | --- | --- | --- |
| `exact` | claim S-VFGNN | every root once per epoch, validation once more | Gaussian, exact |
| `as-published`, `theorem-1` | the paper's, which GCN violates | epochs x batches | Theorem 1 |

Neither is certified. S-VFGNN requires weights that do not depend on edges, but here the data party
steps along gradients through raw edges, and later outputs contain those weights. It also requires
degrees of at most `max_degree`, which sampling does not ensure (a hub is drawn by many receivers).
What `exact` counts correctly is the forward pass with fixed weights, on graphs of such degrees.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from torch import nn

from vesper.graph.graph import Graph
from vesper.mechanism.door import Door
from vesper.mechanism.sampled import Aggregator, vfgnn_sensitivity
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.baselines.paper import claimed_plan, training_of
from vesper.method.baselines.sampled import SAMPLED_DEFAULTS, SampledMethod, num_layers_of
from vesper.method.noise_plan import budget_of, unprotected_plan
from vesper.method.settings import Config
from vesper.model.message_passing import LayerSpec, VfgnnExtractor
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import EDGE_ROWS, epsilon_for, noise_std_for


class VfgnnMethod(SampledMethod):
    """The paper's baseline; one layer by default, which the paper found best for it."""

    name = "vfgnn"
    defaults: Mapping[str, object] = {**SAMPLED_DEFAULTS, "hops": 1}

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Compute the noise by the accounting of the settings."""
        return replace(self._noise_plan(config, sizes), layers=num_layers_of(config))

    def _noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        budget = budget_of(config.privacy, sizes)
        if budget is None:
            return unprotected_plan(1)
        privacy, num_layers = config.privacy, num_layers_of(config)
        sensitivity = vfgnn_sensitivity(
            self.aggregator(config),
            max_degree=privacy.max_degree,
            num_layers=num_layers,
            norm=privacy.clip,
            as_published=privacy.accounting != "exact",
        )
        if privacy.accounting == "exact":
            return _plan_for_every_output(
                budget, sensitivity=sensitivity, releases=config.run.epochs + 1
            )
        # Theorem 1 adds up equal layers; here the sensitivity is that of all layers together.
        sensitivity_per_layer = sensitivity / math.sqrt(num_layers)
        return claimed_plan(
            training_of(config, sizes, edge_sensitivity=sensitivity_per_layer), budget, num_noises=1
        )

    def aggregator(self, config: Config) -> Aggregator:
        """Return the aggregator of the settings."""
        return "gcn" if config.privacy.aggregator == "gcn" else "gin"

    def graph(self, config: Config, door: Door) -> Graph:
        """Return the graph itself."""
        return door.uncertified_graph()

    def extractor(self, config: Config, encoder: nn.Module, layers: LayerSpec) -> VfgnnExtractor:
        """Make the extractor: message passing with noise on the output alone."""
        return VfgnnExtractor(encoder, layers, norm=config.privacy.clip)

    def depth(self, config: Config) -> int:
        """Return 1: one output crosses."""
        return 1


def _plan_for_every_output(budget: Budget, *, sensitivity: float, releases: int) -> NoisePlan:
    """Count each output of a node: validation nodes are sent every epoch and once at the end."""
    shift = sensitivity / math.sqrt(EDGE_ROWS)
    noise_std = noise_std_for(budget=budget, releases=releases, endpoint_shift=shift)
    return NoisePlan(
        plan="paper",
        certified_epsilon=None,
        claimed_epsilon=epsilon_for(
            noise_std=noise_std, releases=releases, delta=budget.delta, endpoint_shift=shift
        ),
        delta=budget.delta,
        noise_stds=(noise_std,),
    )
