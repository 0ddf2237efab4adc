"""The edge relation that the guarantee protects: two graphs that *differ by one edge*.

    G ~ G'   iff   same nodes, and E' = E with one undirected edge {a, b} added or removed

Every bound, proof, audit and test of the edge relation uses these functions.

The module also takes induced subgraphs: `induced_subgraph(graph, nodes)` has the edges with both
ends among `nodes`, and numbers the nodes in the order given.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph, neighbor_dtype


def induced_subgraph(graph: Graph, nodes: NDArray[np.int64]) -> Graph:
    """Return the subgraph induced by distinct nodes, numbered in the order given.

    >>> square = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> part = induced_subgraph(square, np.array([3, 0, 1]))
    >>> part.num_edges, part.neighbors.tolist()
    (2, [1, 0, 2, 1])
    """
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    if len(np.unique(nodes)) != len(nodes):
        raise InputError(
            f"nodes: expected distinct nodes, got {len(nodes)} with repeats; pass each node once"
        )
    receivers = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    senders = graph.neighbors
    inside = (place[receivers] >= 0) & (place[senders] >= 0)
    rows, columns = place[receivers[inside]], place[senders[inside]]
    order = np.lexsort((columns, rows))
    indptr = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(nodes)), out=indptr[1:])
    return Graph(indptr, columns[order].astype(neighbor_dtype(len(nodes))))


Edge = tuple[int, int]


def edges_of(graph: Graph) -> Iterator[Edge]:
    """Yield the undirected edges, each once, smaller end first."""
    for node in range(graph.num_nodes):
        for other in graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]]:
            if node < other:
                yield node, int(other)


def has_edge(graph: Graph, edge: Edge) -> bool:
    """Return whether the two ends are neighbours."""
    row = graph.neighbors[graph.indptr[edge[0]] : graph.indptr[edge[0] + 1]]
    at = int(np.searchsorted(row, edge[1]))
    return at < len(row) and int(row[at]) == edge[1]


def toggle_edge(graph: Graph, edge: Edge) -> Graph:
    """Return the graph that differs in exactly this edge: removed if present, added if not.

    >>> triangle = Graph.from_edges(3, [(0, 1), (1, 2), (0, 2)])
    >>> list(edges_of(toggle_edge(triangle, (1, 2))))
    [(0, 1), (0, 2)]
    """
    a, b = min(edge), max(edge)
    if a == b or a < 0 or b >= graph.num_nodes:
        raise InputError(f"edge: expected two different nodes below {graph.num_nodes}, got {edge}")
    indptr = graph.indptr.copy()
    present = has_edge(graph, (a, b))
    places = []
    for node, other in ((a, b), (b, a)):
        row = graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]]
        places.append(int(graph.indptr[node] + np.searchsorted(row, other)))
        indptr[node + 1 :] += -1 if present else 1
    if present:
        neighbors = np.delete(graph.neighbors, places)
    else:
        neighbors = np.insert(graph.neighbors, places, [b, a])
    return Graph(indptr=indptr, neighbors=neighbors)


def differing_edge(first: Graph, second: Graph) -> Edge | None:
    """Return the edge in which the graphs differ, or None unless they differ by one edge."""
    if first.num_nodes != second.num_nodes or abs(first.num_edges - second.num_edges) != 1:
        return None
    difference = set(edges_of(first)) ^ set(edges_of(second))
    return difference.pop() if len(difference) == 1 else None


def all_graphs(num_nodes: int) -> Iterator[Graph]:
    """Yield every labelled graph on `num_nodes` nodes: 2^(n (n - 1) / 2) of them."""
    pairs = list(combinations(range(num_nodes), 2))
    for mask in range(1 << len(pairs)):
        chosen = [pair for k, pair in enumerate(pairs) if mask >> k & 1]
        yield Graph.from_edges(num_nodes, chosen)


def all_pairs(num_nodes: int) -> Iterator[tuple[Graph, Graph, Edge]]:
    """Yield every unordered pair of graphs on `num_nodes` nodes that differ by one edge."""
    for graph in all_graphs(num_nodes):
        for edge in edges_of(graph):
            yield graph, toggle_edge(graph, edge), edge
