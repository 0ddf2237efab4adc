"""Canary edges: pairs of nodes that share no end, each there or not by a coin of its own.

    runs come in twos: where one has a canary, the other has not

So every canary is there in half of the runs, and what is seen of one says nothing about another.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labelled import labelled_nodes
from vesper.graph.labels import LabelHoldings
from vesper.graph.pairs import Pairs, degrees_of
from vesper.graph.relation import has_edge, toggle_edge

Coins = NDArray[np.bool_]
"""(num_canaries,) which of them are there."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """What both parties hold, and the pairs whose edges come and go."""

    data: DataHoldings
    """Without any of the canary edges."""
    labels: LabelHoldings
    pairs: Pairs

    def holdings(self, coins: Coins) -> DataHoldings:
        """What the data party holds when these canaries are there."""
        graph = self.data.graph
        for a, b in self.pairs[coins]:
            graph = toggle_edge(graph, (int(a), int(b)))
        return replace(self.data, graph=graph)

    @property
    def largest_degree(self) -> int:
        """Of a labelled node when all canaries are there."""
        graph = self.holdings(np.ones(len(self.pairs), dtype=bool)).graph
        return int(degrees_of(graph)[labelled_nodes(self.data, self.labels)].max())

    def first(self) -> "Canaries":
        """The first of them alone; the others are not there."""
        return replace(self, pairs=self.pairs[:1])


def place_canaries(data: DataHoldings, labels: LabelHoldings, pairs: Pairs) -> Canaries:
    """Take the pairs' edges out of the graph, where they are in it.

    Raises:
        InputError: two pairs share a node.
    """
    if len(np.unique(pairs)) != pairs.size:
        raise InputError("canaries: expected pairs of nodes that share no node")
    graph = data.graph
    for a, b in pairs.tolist():
        if has_edge(graph, (a, b)):
            graph = toggle_edge(graph, (a, b))
    return Canaries(replace(data, graph=graph), labels, pairs)


def draw_pairs(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> Pairs:
    """Draw pairs of nodes of one split, no node twice.

    Raises:
        InputError: the split has too few nodes.
    """
    nodes = labelled_nodes(data, labels)[labels.rows(split)]
    if len(nodes) < 2 * count:
        raise InputError(
            f"{labels.path}, column split: expected at least {2 * count} rows with '{split}' for "
            f"{count} canary edges, found {len(nodes)}; ask for fewer with --canaries"
        )
    drawn = np.random.default_rng(seed).permutation(nodes)[: 2 * count]
    return np.sort(drawn.reshape(-1, 2), axis=1)


def coins_of(run: int, *, num_canaries: int, seed: int) -> Coins:
    """Which canaries are there in a run; run 2 t + 1 is the opposite of run 2 t."""
    coins = np.random.default_rng([seed, run // 2]).integers(0, 2, size=num_canaries)
    return np.asarray(coins == run % 2)
