"""Methods on a graph of noisy edges: it is public once it is paid for, so gradients may use it.

door.perturb(..)  once;   then the non-private network of `gcn` on the noisy graph

EdgeRand (Wu et al. 2022): randomised response on every pair of nodes, then a GCN.

LapGraph (Wu et al. 2022): as many of the largest noisy cells as there are edges, then a GCN.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.door import Door
from vesper.mechanism.noisy_graph import EdgeRand, LapGraph, Perturbation
from vesper.mechanism.sampled import Aggregator
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.baselines.sampled import SampledMethod, num_layers_of
from vesper.method.noise_plan import unprotected_plan
from vesper.method.settings import Config


class NoisyEdgesMethod(SampledMethod):
    """Edges only through `Door.perturb`, once.

    Args:
        name: name of the method.
        perturbation: returns the way in which edges are made noisy, given epsilon.
    """

    def __init__(self, name: str, perturbation: Callable[[float], Perturbation]) -> None:
        self.name, self._perturbation = name, perturbation

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Plan one release with pure epsilon; no delta is needed.

        Raises:
            InputError: epsilon or the number of nodes is out of range.
        """
        if config.privacy.accounting != "exact":
            raise InputError(
                f"accounting: expected 'exact' for {self.name}, whose authors count no other way, "
                f"got '{config.privacy.accounting}'"
            )
        epsilon = config.privacy.epsilon
        if math.isinf(epsilon):
            return replace(unprotected_plan(0), releases=1, layers=num_layers_of(config))
        self._perturbation(epsilon).refuse_many(sizes.num_nodes)
        return NoisePlan(
            plan="certified",
            certified_epsilon=epsilon,
            claimed_epsilon=None,
            delta=0.0,
            noise_stds=(),
            releases=1,
            layers=num_layers_of(config),
        )

    def aggregator(self, config: Config) -> Aggregator:
        """Return `gcn`, as published."""
        return "gcn"

    def graph(self, config: Config, door: Door) -> Graph:
        """Return a graph of noisy edges; the graph itself only without privacy."""
        epsilon = config.privacy.epsilon
        return door.perturb(self._perturbation(epsilon) if math.isfinite(epsilon) else None)

    def noise(self, config: Config, noise_plan: NoisePlan) -> None:
        """Return None: edges are noisy, layers are not."""


class EdgeRandMethod(NoisyEdgesMethod):
    """Every pair of nodes may be flipped."""

    def __init__(self) -> None:
        super().__init__("edgerand", lambda epsilon: EdgeRand(epsilon=epsilon))


class LapGraphMethod(NoisyEdgesMethod):
    """The density stays the same, up to noise."""

    def __init__(self) -> None:
        super().__init__("lapgraph", lambda epsilon: LapGraph(epsilon=epsilon))
