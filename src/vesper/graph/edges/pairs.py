"""Pairs of nodes with and without an edge, and degrees: for those who judge attacks.

An attack is scored against the truth, so whoever scores it holds the graph. Nothing here crosses.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph

Pairs = NDArray[np.int64]
"""(num_pairs, 2) nodes, smaller first."""


def degrees_of(graph: Graph) -> NDArray[np.int64]:
    """(num_nodes,) neighbours of each node."""
    return np.diff(graph.indptr)


def are_edges(graph: Graph, pairs: Pairs) -> NDArray[np.bool_]:
    """Whether each pair is an edge: (num_pairs,)."""
    keys = _keys(graph, _edges(graph))  # ascending, as rows and neighbours are
    wanted = _keys(graph, np.sort(pairs, axis=1))
    at = np.searchsorted(keys, wanted)
    found = np.zeros(len(pairs), dtype=bool)
    inside = at < len(keys)
    found[inside] = keys[at[inside]] == wanted[inside]
    return found


def edges_at(graph: Graph, node: int) -> Pairs:
    """All edges of one node: (degree, 2).

    >>> edges_at(Graph.from_edges(4, [(0, 2), (2, 3), (0, 1)]), 2).tolist()
    [[0, 2], [2, 3]]
    """
    others = graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]].astype(np.int64)
    return np.sort(np.stack([np.full_like(others, node), others], axis=1), axis=1)


def draw_edges(graph: Graph, count: int, *, rng: np.random.Generator) -> Pairs:
    """Draw distinct edges evenly; all of them when there are no more."""
    edges = _edges(graph)
    return edges[np.sort(rng.permutation(len(edges))[:count])]


def draw_non_edges(graph: Graph, count: int, *, rng: np.random.Generator) -> Pairs:
    """Draw distinct pairs without an edge evenly.

    Raises:
        InputError: nearly all pairs are edges.
    """
    num_nodes, found = graph.num_nodes, np.empty((0, 2), dtype=np.int64)
    for _ in range(100):
        drawn = np.sort(rng.integers(0, num_nodes, size=(2 * count + 16, 2)), axis=1)
        drawn = drawn[drawn[:, 0] < drawn[:, 1]]
        found = np.concatenate([found, drawn[~are_edges(graph, drawn)]])
        _, first = np.unique(_keys(graph, found), return_index=True)
        found = found[np.sort(first)]
        if len(found) >= count:
            return found[:count]
    raise InputError(
        f"graph: expected at least {count} pairs of nodes without an edge, found {len(found)}; "
        f"ask for fewer pairs"
    )


def _edges(graph: Graph) -> Pairs:
    """(num_edges, 2), by first node, then second."""
    receivers = np.repeat(np.arange(graph.num_nodes), degrees_of(graph))
    edges = np.stack([receivers, graph.neighbors.astype(np.int64)], axis=1)
    return edges[edges[:, 0] < edges[:, 1]]


def _keys(graph: Graph, pairs: Pairs) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = pairs[:, 0] * graph.num_nodes + pairs[:, 1]
    return keys
