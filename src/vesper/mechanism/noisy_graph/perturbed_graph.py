"""Graphs of noisy edges (LinkTeller, Wu et al. 2022): pure epsilon, and then public.

    a cell is a pair of nodes u < v; its value is 1 for an edge and 0 otherwise

One undirected edge is one cell. What comes out may be used for anything, gradients too. Cells are
never listed one by one: the noise that matters is rare and drawn as such (`rare_cells`). How cells
are made noisy: `edgerand`, `lapgraph`.
"""

from typing import Protocol

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.receipt import Receipt, encode

SMALLEST_EPSILON, LARGEST_EPSILON = 0.05, 100.0
"""Outside, noise cannot be drawn or is none."""


class Perturbation(Protocol):
    """A way to make noisy edges."""

    @property
    def event(self) -> PureRelease:
        """What to charge."""

    def refuse_many(self, num_nodes: int) -> None:
        """Refuse sizes that are known to be too large."""

    def max_edges(self, graph: Graph) -> int:
        """How many edges the noisy graph has at most, but for a chance below 2^-100."""

    def perturb(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Make the noisy graph."""


def release_graph(
    graph: Graph,
    perturbation: Perturbation,
    *,
    receipt: Receipt,
    fingerprint: str,
    noise: NoiseSource,
) -> Graph:
    """Release a graph of noisy edges for a receipt of its event."""
    everyone = encode(None, graph.num_nodes)
    receipt.spend(event=perturbation.event, receivers=everyone, graph=fingerprint)
    return perturbation.perturb(graph, noise)


def graph_bytes(num_edges: int, graph: Graph) -> int:
    """Bytes of a graph with the nodes of this one and so many edges."""
    return int(graph.indptr.nbytes + 2 * num_edges * graph.neighbors.dtype.itemsize)


def expect_epsilon(epsilon: float) -> None:
    """Refuse an epsilon for which noise cannot be drawn, or is none; nothing was charged yet."""
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"epsilon of noisy edges: expected between {SMALLEST_EPSILON:g} and "
            f"{LARGEST_EPSILON:g}, got {epsilon:g}; nothing was charged"
        )
