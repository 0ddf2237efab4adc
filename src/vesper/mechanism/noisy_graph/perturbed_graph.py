"""Release of graphs of noisy edges (LinkTeller, Wu et al. 2022): pure epsilon, then public.

    a cell is a pair of nodes u < v; its value is 1 for an edge and 0 otherwise

One undirected edge is one cell. The noisy graph may be used for anything, including gradients.
Cells are never enumerated: only few of them change, and those are sampled directly (`rare_pairs`).
`edgerand` and `lapgraph` are two ways to perturb cells.
"""

from typing import Protocol

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.receipt import Receipt, encode

SMALLEST_EPSILON, LARGEST_EPSILON = 0.05, 100.0
"""Beyond these, noise cannot be drawn or vanishes."""


class Perturbation(Protocol):
    """A way to make noisy edges."""

    @property
    def event(self) -> PureRelease:
        """Event to charge."""

    def refuse_many(self, num_nodes: int) -> None:
        """Refuse graphs that are known to be too large."""

    def perturb(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Draw the noisy graph."""


def release_graph(
    graph: Graph,
    perturbation: Perturbation,
    *,
    receipt: Receipt,
    account: str,
    noise: NoiseSource,
) -> Graph:
    """Release a graph of noisy edges for a receipt of its event, from the account of that name."""
    everyone = encode(None, graph.num_nodes)
    receipt.spend(event=perturbation.event, receivers=everyone, graph=account)
    return perturbation.perturb(graph, noise)


def expect_epsilon(epsilon: float) -> None:
    """Refuse an epsilon at which noise cannot be drawn or vanishes, before anything is charged."""
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"epsilon of noisy edges: expected between {SMALLEST_EPSILON:g} and "
            f"{LARGEST_EPSILON:g}, got {epsilon:g}; nothing was charged"
        )
