"""EdgeRand (Wu et al. 2022): randomised response on every pair of nodes, then a GCN."""

from vesper.mechanism.edgerand import EdgeRand
from vesper.method.noisy_edges import NoisyEdgesMethod


class EdgeRandMethod(NoisyEdgesMethod):
    """Every pair of nodes may be flipped."""

    def __init__(self) -> None:
        super().__init__("edgerand", lambda epsilon: EdgeRand(epsilon=epsilon))
