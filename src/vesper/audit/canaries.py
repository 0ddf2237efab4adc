"""Canaries: edges, or nodes with all their edges, whose presence a coin toss decides.

    runs come in pairs: a canary is present in exactly one run of each pair

So every canary is present in half of the runs. Two canaries share no node, nor are the neighbours
of canary nodes shared, so that observations of one canary carry no information about another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges import Pairs, are_edges, degrees_of, edges_at, toggle_edge
from vesper.graph.graph import Graph
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings, nodes_of_label_rows

Coins = NDArray[np.bool_]
"""(num_canaries,) whether each canary is present."""

Numbers = NDArray[np.float64]
Unit = Literal["edge", "node"]
UNITS: tuple[Unit, ...] = ("edge", "node")


@dataclass(frozen=True, eq=False)
class Canaries:
    """Inputs of both parties, and the edges that are present in some runs only."""

    data: DataHoldings
    """Inputs of the data party, without any edge of a canary."""
    labels: LabelHoldings
    edges: tuple[Pairs, ...]
    """Edges of each canary, which are all present or all absent."""
    unit: Unit = "edge"

    def __len__(self) -> int:
        return len(self.edges)

    def graph(self, coins: Coins) -> Graph:
        """Return the graph with these canaries present."""
        chosen = [edges for edges, is_present in zip(self.edges, coins, strict=True) if is_present]
        return _toggled(self.data.graph, chosen)

    def holdings(self, coins: Coins) -> DataHoldings:
        """Return the inputs of the data party with these canaries present."""
        return replace(self.data, graph=self.graph(coins))

    @cached_property
    def graph_with_all(self) -> Graph:
        """Graph with all canaries; the graph without any is `data.graph`."""
        return self.graph(np.ones(len(self), dtype=bool))

    def sum_over_nodes(self, numbers: Numbers) -> Numbers:
        """Sum numbers of nodes per canary: over its nodes, or over all nodes if it is alone."""
        if len(self) == 1:
            return np.array([numbers.sum()])
        return np.array([numbers[np.unique(edges)].sum() for edges in self.edges])

    def endpoint_rows(self, rows: Numbers) -> Numbers:
        """Row of one node of each canary, joined with the sum of its neighbours' rows.

        Args:
            rows: (num_nodes, width).
        """
        joined = []
        for edges in self.edges:
            own = rows[np.intersect1d(edges[0], edges[-1])[0]]
            joined.append(np.concatenate([own, rows[np.unique(edges)].sum(axis=0) - own]))
        return np.stack(joined)

    def shares_in(self, graph: Graph) -> Numbers:
        """Share of each canary's edges that are in a graph: (num_canaries,)."""
        return np.array([are_edges(graph, edges).mean() for edges in self.edges])

    @property
    def largest_degree(self) -> int:
        """Largest degree of a labelled node when all canaries are present."""
        return int(
            degrees_of(self.graph_with_all)[nodes_of_label_rows(self.data, self.labels)].max()
        )

    def first(self) -> "Canaries":
        """Return the first canary alone; the others are absent from all runs."""
        return replace(self, edges=self.edges[:1])


def place_edges(data: DataHoldings, labels: LabelHoldings, pairs: Pairs) -> Canaries:
    """Make canaries of pairs of nodes; edges between them are removed from the graph.

    Raises:
        InputError: two pairs share a node.
    """
    present = pairs[are_edges(data.graph, pairs)]
    return _make_canaries(
        data, labels, [pair[None] for pair in pairs], present=[present], unit="edge"
    )


def place_nodes(data: DataHoldings, labels: LabelHoldings, nodes: NDArray[np.int64]) -> Canaries:
    """Make canaries of nodes, each with all its edges, which are removed from the graph.

    Raises:
        InputError: a node has no edge, or two nodes are neighbours or share a neighbour.
    """
    edges = [edges_at(data.graph, int(node)) for node in nodes]
    if not all(len(each) for each in edges):
        raise InputError("canaries: expected nodes with at least one edge")
    return _make_canaries(data, labels, edges, present=edges, unit="node")


def _make_canaries(
    data: DataHoldings,
    labels: LabelHoldings,
    edges: Sequence[Pairs],
    *,
    present: Sequence[Pairs],
    unit: Unit,
) -> Canaries:
    nodes = np.concatenate([np.unique(each) for each in edges])
    if len(np.unique(nodes)) != len(nodes):
        raise InputError(f"canaries: expected each {unit} to share no node with another")
    without = replace(data, graph=_toggled(data.graph, present))
    return Canaries(without, labels, tuple(edges), unit)


def _toggled(graph: Graph, edges: Sequence[Pairs]) -> Graph:
    for each in edges:
        for a, b in each.tolist():
            graph = toggle_edge(graph, (a, b))
    return graph


def coins_of(run: int, *, num_canaries: int, seed: int) -> Coins:
    """Toss which canaries are present in a run; run 2 t + 1 is the complement of run 2 t."""
    coins = np.random.default_rng([seed, run // 2]).integers(0, 2, size=num_canaries)
    return np.asarray(coins == run % 2)
