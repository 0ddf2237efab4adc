"""Degrees, and pairs of nodes with and without an edge: ground truth for attacks.

An attack is scored against the truth, so its evaluator holds the graph. Nothing here is sent to
another party.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph

Pairs = NDArray[np.int64]
"""(num_pairs, 2) node numbers, smaller first."""


def degrees_of(graph: Graph) -> NDArray[np.int64]:
    """Return the (num_nodes,) number of neighbours of each node."""
    return np.diff(graph.indptr)


def are_edges(graph: Graph, pairs: Pairs) -> NDArray[np.bool_]:
    """Return whether each pair is an edge: (num_pairs,)."""
    keys = _keys(graph, _edges(graph))  # ascending, because rows and neighbours are
    wanted = _keys(graph, np.sort(pairs, axis=1))
    at = np.searchsorted(keys, wanted)
    is_edge = np.zeros(len(pairs), dtype=bool)
    inside = at < len(keys)
    is_edge[inside] = keys[at[inside]] == wanted[inside]
    return is_edge


def edges_at(graph: Graph, node: int) -> Pairs:
    """Return all edges of one node: (degree, 2).

    >>> edges_at(Graph.from_edges(4, [(0, 2), (2, 3), (0, 1)]), 2).tolist()
    [[0, 2], [2, 3]]
    """
    others = graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]].astype(np.int64)
    return np.sort(np.stack([np.full_like(others, node), others], axis=1), axis=1)


def draw_edges(graph: Graph, count: int, *, rng: np.random.Generator) -> Pairs:
    """Draw distinct edges uniformly; all edges if there are no more than `count`."""
    edges = _edges(graph)
    return edges[np.sort(rng.permutation(len(edges))[:count])]


def draw_non_edges(graph: Graph, count: int, *, rng: np.random.Generator) -> Pairs:
    """Draw distinct pairs without an edge uniformly.

    Raises:
        InputError: too few such pairs were found, as nearly all pairs are edges.
    """
    num_nodes, pairs = graph.num_nodes, np.empty((0, 2), dtype=np.int64)
    for _ in range(100):
        candidates = np.sort(rng.integers(0, num_nodes, size=(2 * count + 16, 2)), axis=1)
        candidates = candidates[candidates[:, 0] < candidates[:, 1]]
        pairs = np.concatenate([pairs, candidates[~are_edges(graph, candidates)]])
        _, first = np.unique(_keys(graph, pairs), return_index=True)
        pairs = pairs[np.sort(first)]
        if len(pairs) >= count:
            return pairs[:count]
    raise InputError(
        f"graph: expected at least {count} pairs of nodes without an edge, found {len(pairs)}; "
        f"request fewer pairs"
    )


def _edges(graph: Graph) -> Pairs:
    """Return the (num_edges, 2) edges, ordered by first node, then second."""
    receivers = np.repeat(np.arange(graph.num_nodes), degrees_of(graph))
    edges = np.stack([receivers, graph.neighbors.astype(np.int64)], axis=1)
    return edges[edges[:, 0] < edges[:, 1]]


def _keys(graph: Graph, pairs: Pairs) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = pairs[:, 0] * graph.num_nodes + pairs[:, 1]
    return keys
