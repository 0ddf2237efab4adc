"""GIN and GCN without privacy: sampled layers, all of whose outputs cross.

The paper's methods (`paper`) add noise to these if epsilon is finite; nothing else differs. So the
paper's plan at epsilon = inf is the non-private network, bit for bit. Private methods approach GIN
and GCN from below.
"""

from typing import Literal

from vesper.graph.graph import Graph
from vesper.mechanism.door import Door
from vesper.mechanism.sampled import Aggregator
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.baselines.sampled import SampledMethod, num_layers_of
from vesper.method.noise_plan import unprotected_plan
from vesper.method.settings import Config


class GnnMethod(SampledMethod):
    """A message-passing network without privacy; no noise, whatever the epsilon."""

    def __init__(self, name: str, *, aggregator: Literal["gin", "gcn"]) -> None:
        self.name, self.base = name, aggregator

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Make a plan without noise, which guarantees nothing."""
        return unprotected_plan(num_layers_of(config))

    def aggregator(self, config: Config) -> Aggregator:
        """Return the aggregator of its name."""
        return self.base

    def graph(self, config: Config, door: Door) -> Graph:
        """Return the graph itself."""
        return door.uncertified_graph()


class GcnMethod(GnnMethod):
    """Degree-weighted sum over sampled neighbours."""

    def __init__(self) -> None:
        super().__init__("gcn", aggregator="gcn")


class GinMethod(GnnMethod):
    """Sum over sampled neighbours."""

    def __init__(self) -> None:
        super().__init__("gin", aggregator="gin")
