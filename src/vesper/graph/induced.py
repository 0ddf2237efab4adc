"""The part of a graph between some of its nodes.

edges of the part = edges with both ends among `nodes`, which are numbered anew in their order
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph, neighbor_dtype


def induced(graph: Graph, nodes: NDArray[np.int64]) -> Graph:
    """Give the graph between distinct nodes.

    >>> square = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> part = induced(square, np.array([3, 0, 1]))
    >>> part.num_edges, part.neighbors.tolist()
    (2, [1, 0, 2, 1])
    """
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    if len(np.unique(nodes)) != len(nodes):
        raise InputError(f"nodes: expected distinct ones, got {len(nodes)} with repeats")
    receivers = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    senders = graph.neighbors
    inside = (place[receivers] >= 0) & (place[senders] >= 0)
    rows, columns = place[receivers[inside]], place[senders[inside]]
    order = np.lexsort((columns, rows))
    indptr = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(nodes)), out=indptr[1:])
    return Graph(indptr, columns[order].astype(neighbor_dtype(len(nodes))))
