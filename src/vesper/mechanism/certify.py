"""The sensitivity of an aggregation by brute force: all small graphs, all one-edge changes.

    D       = operator(G) - operator(G'),  G and G' differ by one edge
    move^2  = sum_v ||sum_u D_vu m_u||^2 = sum_uw (D^T D)_uw <m_u, m_w>
           <= sum_uw |(D^T D)_uw|                          for all messages with ||m_u|| <= 1

So a bound that is at least the certified move of every pair is *proved* for graphs of that size,
whatever the messages. It is no proof for larger graphs; a bound that fails here is refuted for
good. Bring your own aggregation: any function from a graph to its matrix.

| nodes | graphs | pairs | time |
| --- | --- | --- | --- |
| 4 | 64 | 192 | |
| 5 | 1 024 | 5 120 | a fifth of a second |
| 6 | 32 768 | 245 760 | some ten seconds |
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.graph.relation import Edge, all_graphs, edges_of
from vesper.mechanism.weights import Floats
from vesper.privacy.expect import expect
from vesper.progress import Progress, silent

MOST_NODES = 6
MOVED = 1e-12
"""An entry of the output that differs by less has only been rounded differently."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """What was found over all pairs of graphs of one size.

    Args:
        move: the largest l2 move, 0 when there was no pair.
        pairs: how many pairs were looked at.
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
    progress: Progress = silent,
) -> Certificate:
    """Bound a linear aggregation over all graphs on `num_nodes` nodes and all messages.

    Args:
        operator: graph to matrix, one row a node, any number of columns.
        num_nodes: from 1 to 6.
        admits: whether a graph keeps a promise; pairs count when both graphs do.
        progress: told about every graph.

    >>> from vesper.mechanism.gin import GinAggregation
    >>> found = certify(GinAggregation().operator, num_nodes=4)
    >>> round(found.move**2, 9), found.rows, found.pairs
    (2.0, 2, 192)
    """
    return _search(operator, certified_move, num_nodes, admits, progress)


def exhaust(
    aggregate: Callable[[Graph], Floats],
    *,
    num_nodes: int,
    admits: Callable[[Graph], bool] = lambda graph: True,
    progress: Progress = silent,
) -> Certificate:
    """Largest move of any aggregation, linear or not, over the outputs that `aggregate` lists.

    Args:
        aggregate: graph to outputs (choices, num_nodes, width), one for each choice of messages.
        num_nodes: from 1 to 6.
        admits: whether a graph keeps a promise; pairs count when both graphs do.
        progress: told about every graph.
    """
    return _search(aggregate, _largest_choice, num_nodes, admits, progress)


def certified_move(difference: Floats) -> Floats:
    """sqrt(sum |D^T D|), over the last two dimensions."""
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
    expect(
        1 <= num_nodes <= MOST_NODES,
        name="num_nodes",
        wanted=f"1 <= num_nodes <= {MOST_NODES}",
        got=num_nodes,
        remedy="larger sizes have too many graphs",
    )
    graphs, pairs = _graphs(num_nodes), _pairs(num_nodes)
    admitted = np.array([admits(graph) for graph in graphs])  # (graphs,)
    outputs: list[Floats] = []
    place = np.cumsum(admitted) - 1  # of an admitted graph's output
    for done, graph in enumerate(graphs):
        if admitted[done]:
            outputs.append(output(graph))
        progress("graphs", done + 1, len(graphs))
    best, count, rows, worst = 0.0, 0, 0, None
    stacked = np.array(outputs)  # (admitted graphs, num_nodes, columns)
    for edge, (present, absent) in pairs.items():
        both = admitted[present] & admitted[absent]
        if not both.any():
            continue
        present, absent = present[both], absent[both]
        difference = stacked[place[present]] - stacked[place[absent]]
        moves = measure(difference)  # (pairs,)
        count += len(moves)
        rows = max(rows, int(moved_rows(difference).sum(axis=-1).max()))
        at = int(moves.argmax())
        if moves[at] > best:
            best, worst = float(moves[at]), (graphs[int(present[at])], edge)
    return Certificate(move=best, pairs=count, rows=rows, worst=worst)


@cache
def _graphs(num_nodes: int) -> tuple[Graph, ...]:
    return tuple(all_graphs(num_nodes))


@cache
def _pairs(num_nodes: int) -> dict[Edge, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each edge: places of the graphs that have it, and of those that differ in it alone."""
    edges = [frozenset(edges_of(graph)) for graph in _graphs(num_nodes)]
    place = {each: at for at, each in enumerate(edges)}
    pairs: dict[Edge, list[tuple[int, int]]] = {}
    for at, each in enumerate(edges):
        for edge in each:
            pairs.setdefault(edge, []).append((at, place[each - {edge}]))
    return {edge: (np.array(p)[:, 0], np.array(p)[:, 1]) for edge, p in sorted(pairs.items())}
