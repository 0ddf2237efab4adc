"""Canaries: edges, or nodes with all their edges, each there or not by a coin of its own.

    runs come in twos: where one has a canary, the other has not

So every canary is there in half of the runs. Two canaries share no node, those at the other ends of
a node's edges included: what is seen of one says nothing about another.
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
"""(num_canaries,) which of them are there."""

Numbers = NDArray[np.float64]
Unit = Literal["edge", "node"]
UNITS: tuple[Unit, ...] = ("edge", "node")


@dataclass(frozen=True, eq=False)
class Canaries:
    """What both parties hold, and the edges that come and go."""

    data: DataHoldings
    """Without any of the canaries' edges."""
    labels: LabelHoldings
    edges: tuple[Pairs, ...]
    """Of each canary; they are there together or not at all."""
    unit: Unit = "edge"

    def __len__(self) -> int:
        return len(self.edges)

    def graph(self, coins: Coins) -> Graph:
        """The graph when these canaries are there."""
        chosen = [edges for edges, is_there in zip(self.edges, coins, strict=True) if is_there]
        return _toggled(self.data.graph, chosen)

    def holdings(self, coins: Coins) -> DataHoldings:
        """What the data party holds when these canaries are there."""
        return replace(self.data, graph=self.graph(coins))

    @cached_property
    def graph_with_all(self) -> Graph:
        """The graph with all canaries; that without any is `data.graph`."""
        return self.graph(np.ones(len(self), dtype=bool))

    def sum_over_nodes(self, numbers: Numbers) -> Numbers:
        """Add up a number a node: of one canary over all, of several over the nodes of each."""
        if len(self) == 1:
            return np.array([numbers.sum()])
        return np.array([numbers[np.unique(edges)].sum() for edges in self.edges])

    def endpoint_rows(self, rows: Numbers) -> Numbers:
        """Rows, (num_nodes, width), of a node of each canary beside the sum of its neighbours'."""
        both = []
        for edges in self.edges:
            own = rows[np.intersect1d(edges[0], edges[-1])[0]]
            both.append(np.concatenate([own, rows[np.unique(edges)].sum(axis=0) - own]))
        return np.stack(both)

    def shares_in(self, graph: Graph) -> Numbers:
        """Share of each canary's edges that a graph has: (num_canaries,)."""
        return np.array([are_edges(graph, edges).mean() for edges in self.edges])

    @property
    def largest_degree(self) -> int:
        """Of a labelled node when all canaries are there."""
        return int(
            degrees_of(self.graph_with_all)[nodes_of_label_rows(self.data, self.labels)].max()
        )

    def first(self) -> "Canaries":
        """The first of them alone; the others are not there."""
        return replace(self, edges=self.edges[:1])


def place_edges(data: DataHoldings, labels: LabelHoldings, pairs: Pairs) -> Canaries:
    """Make canaries of pairs of nodes; their edges are taken out where they are there.

    Raises:
        InputError: two pairs share a node.
    """
    present = pairs[are_edges(data.graph, pairs)]
    return _make_canaries(
        data, labels, [pair[None] for pair in pairs], present=[present], unit="edge"
    )


def place_nodes(data: DataHoldings, labels: LabelHoldings, nodes: NDArray[np.int64]) -> Canaries:
    """Make canaries of nodes, each with all the edges it has; they are taken out.

    Raises:
        InputError: a node has no edge, or two of them are neighbours or have one together.
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
    """Which canaries are there in a run; run 2 t + 1 is the opposite of run 2 t."""
    coins = np.random.default_rng([seed, run // 2]).integers(0, 2, size=num_canaries)
    return np.asarray(coins == run % 2)
