"""LapGraph (Wu et al. 2022): as many of the largest noisy cells as there are edges, then a GCN."""

from vesper.mechanism.lapgraph import LapGraph
from vesper.method.noisy_edges import NoisyEdgesMethod


class LapGraphMethod(NoisyEdgesMethod):
    """The density stays as it is, give or take noise."""

    def __init__(self) -> None:
        super().__init__("lapgraph", lambda epsilon: LapGraph(epsilon=epsilon))
