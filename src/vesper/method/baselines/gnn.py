"""What GIN, GCN and the paper's plan share: sampled layers, all of whose outputs cross.

With a finite epsilon there is noise, without there is none, and nothing else differs: that is why
the paper's plan at epsilon = inf is the non-private network, bit for bit.

GCN without privacy: weights by degree, all nodes heard.

GIN without privacy: the line that private methods approach.
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
    """A message-passing network without privacy; no noise, whatever epsilon is asked for."""

    def __init__(self, name: str, *, aggregator: Literal["gin", "gcn"]) -> None:
        self.name, self.base = name, aggregator

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Promise nothing."""
        return unprotected_plan(num_layers_of(config))

    def aggregator(self, config: Config) -> Aggregator:
        """The one of its name."""
        return self.base

    def graph(self, config: Config, door: Door) -> Graph:
        """The graph itself."""
        return door.uncertified_graph()


class GcnMethod(GnnMethod):
    """Degree-weighted sum over sampled neighbours."""

    def __init__(self) -> None:
        super().__init__("gcn", aggregator="gcn")


class GinMethod(GnnMethod):
    """Sum over sampled neighbours."""

    def __init__(self) -> None:
        super().__init__("gin", aggregator="gin")
