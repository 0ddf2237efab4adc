"""Sensitivity of an aggregation by brute force: all small graphs, all one-edge changes.

    D       = operator(G) - operator(G'),  G and G' differ by one edge
    move^2  = sum_v ||sum_u D_vu m_u||^2 = sum_uw (D^T D)_uw <m_u, m_w>
           <= sum_uw |(D^T D)_uw|                          for all messages with ||m_u|| <= 1

So a bound that is at least the certified move of every pair is *proved* for graphs of that size,
whatever the messages. This proves nothing for larger graphs, but a bound that fails here is
refuted. Any aggregation can be checked: pass a function from a graph to its matrix.

| nodes | graphs | pairs | time |
| --- | --- | --- | --- |
| 4 | 64 | 192 | |
| 5 | 1 024 | 5 120 | a fifth of a second |
| 6 | 32 768 | 245 760 | about ten seconds |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vesper.graph.edges.edge_relation import Edge, all_graphs, edges_of
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import Floats
from vesper.privacy.accounting.safe_numbers import expect
from vesper.progress import Progress, no_progress

MAX_NODES = 6
MOVED = 1e-12
"""Smaller differences between outputs are attributed to rounding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """Result of a search over all pairs of graphs of one size.

    Args:
        move: the largest l2 move, 0 if there was no pair.
        pairs: number of pairs checked.
        rows: the most rows that one edge moved.
        worst: the graph and the edge of the largest move.
    """

    move: float
    pairs: int
    rows: int
    worst: tuple[Graph, Edge] | None


def certify(
    operator: Callable[[Graph], Floats],
    *,
    num_nodes: int,
    admits: Callable[[Graph], bool] = lambda graph: True,
    progress: Progress = no_progress,
) -> Certificate:
    """Bound a linear aggregation over all graphs on `num_nodes` nodes and all messages.

    Args:
        operator: graph to matrix, one row per node, any number of columns.
        num_nodes: from 1 to 6.
        admits: whether a graph keeps a promise; pairs count if both graphs do.
        progress: receives progress reports.

    >>> from vesper.mechanism.reference.gin import GinAggregation
    >>> found = certify(GinAggregation().operator, num_nodes=4)
    >>> round(found.move**2, 9), found.rows, found.pairs
    (2.0, 2, 192)
    """
    return _search(operator, certified_move, num_nodes, admits, progress)


def exhaustive_move(
    aggregate: Callable[[Graph], Floats],
    *,
    num_nodes: int,
    admits: Callable[[Graph], bool] = lambda graph: True,
    progress: Progress = no_progress,
) -> Certificate:
    """Largest move of any aggregation, linear or not, over the outputs that `aggregate` lists.

    Args:
        aggregate: graph to outputs (choices, num_nodes, width), one for each choice of messages.
        num_nodes: from 1 to 6.
        admits: whether a graph keeps a promise; pairs count if both graphs do.
        progress: receives progress reports.
    """
    return _search(aggregate, _largest_choice, num_nodes, admits, progress)


def moved_rows_by_edge(
    operator: Callable[[Graph], Floats], *, num_nodes: int
) -> Iterator[tuple[Graph, Edge, set[int]]]:
    """Yield every graph, each of its edges, and the rows that move when that edge is removed."""
    for edge, graphs, difference in _differences(
        operator, num_nodes, lambda graph: True, no_progress
    ):
        for graph, moved in zip(graphs, moved_rows(difference), strict=True):
            yield graph, edge, set(np.flatnonzero(moved).tolist())


def certified_move(difference: Floats) -> Floats:
    """Return sqrt(sum |D^T D|), over the last two dimensions."""
    gram = np.swapaxes(difference, -1, -2) @ difference  # (.., columns, columns)
    bound: Floats = np.sqrt(np.abs(gram).sum(axis=(-1, -2)))
    return bound


def moved_rows(difference: Floats) -> NDArray[np.bool_]:
    """Which rows differ; (.., num_nodes, width) to (.., num_nodes)."""
    return np.asarray((np.abs(difference) > MOVED).any(axis=-1))


def _largest_choice(difference: Floats) -> Floats:
    squares = np.square(difference).sum(axis=(-1, -2))  # (pairs, choices)
    largest: Floats = np.sqrt(squares.max(axis=-1))
    return largest


def _search(
    output: Callable[[Graph], Floats],
    measure: Callable[[Floats], Floats],
    num_nodes: int,
    admits: Callable[[Graph], bool],
    progress: Progress,
) -> Certificate:
    best, pairs, rows, worst = 0.0, 0, 0, None
    for edge, graphs, difference in _differences(output, num_nodes, admits, progress):
        moves = measure(difference)  # (pairs,)
        pairs += len(moves)
        rows = max(rows, int(moved_rows(difference).sum(axis=-1).max()))
        at = int(moves.argmax())
        if moves[at] > best:
            best, worst = float(moves[at]), (graphs[at], edge)
    return Certificate(move=best, pairs=pairs, rows=rows, worst=worst)


def _differences(
    output: Callable[[Graph], Floats],
    num_nodes: int,
    admits: Callable[[Graph], bool],
    progress: Progress,
) -> Iterator[tuple[Edge, list[Graph], Floats]]:
    """Yield for each edge the graphs that have it, and what it adds to their outputs, stacked."""
    expect(
        1 <= num_nodes <= MAX_NODES,
        name="num_nodes",
        wanted=f"1 <= num_nodes <= {MAX_NODES}",
        got=num_nodes,
        remedy="use a smaller size: larger ones have too many graphs",
    )
    graphs = _graphs(num_nodes)
    admitted = np.array([admits(graph) for graph in graphs])  # (graphs,)
    place = np.cumsum(admitted) - 1  # position of each admitted graph's output
    outputs: list[Floats] = []
    for at, graph in enumerate(graphs):
        if admitted[at]:
            outputs.append(output(graph))
        progress("graphs", at + 1, len(graphs))
    stacked = np.array(outputs)  # (admitted graphs, num_nodes, columns)
    for edge, (present, absent) in _pairs(num_nodes).items():
        both = admitted[present] & admitted[absent]
        if both.any():
            having, lacking = present[both], absent[both]  # (pairs,)
            difference = stacked[place[having]] - stacked[place[lacking]]
            yield edge, [graphs[at] for at in having], difference


@cache
def _graphs(num_nodes: int) -> tuple[Graph, ...]:
    return tuple(all_graphs(num_nodes))


@cache
def _pairs(num_nodes: int) -> dict[Edge, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Map each edge to positions of graphs that have it, and of the same graphs without it."""
    edges = [frozenset(edges_of(graph)) for graph in _graphs(num_nodes)]
    place = {each: at for at, each in enumerate(edges)}
    pairs: dict[Edge, list[tuple[int, int]]] = {}
    for at, each in enumerate(edges):
        for edge in each:
            pairs.setdefault(edge, []).append((at, place[each - {edge}]))
    return {edge: (np.array(p)[:, 0], np.array(p)[:, 1]) for edge, p in sorted(pairs.items())}
