"""Numbering of pairs of nodes.

cell of {u, v}, u < v   =   v (v - 1) / 2 + u            from 0 to n (n - 1) / 2 - 1
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors, neighbor_dtype

Cells = NDArray[np.int64]
"""Cell numbers, each at most once."""


def num_cells_of(num_nodes: int) -> int:
    """How many pairs of nodes there are."""
    return num_nodes * (num_nodes - 1) // 2


def cells_of(graph: Graph) -> Cells:
    """Return the cells of all edges, ascending."""
    larger = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))  # (2 * num_edges,)
    smaller = np.asarray(graph.neighbors, dtype=np.int64)
    once = smaller < larger
    larger, smaller = larger[once], smaller[once]
    cells: Cells = larger * (larger - 1) // 2 + smaller
    return cells  # (num_edges,)


def pairs_of(cells: Cells) -> tuple[Cells, Cells]:
    """Return the (smaller, larger) node of each cell.

    >>> [pair.tolist() for pair in pairs_of(np.arange(4))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    larger = ((1 + np.sqrt(1 + 8 * cells.astype(np.float64))) / 2).astype(np.int64)
    larger -= larger * (larger - 1) // 2 > cells  # a float may be off by one either way
    larger += larger * (larger + 1) // 2 <= cells
    return cells - larger * (larger - 1) // 2, larger


def graph_of(cells: Cells, *, num_nodes: int) -> Graph:
    """Build the graph whose edges are these cells."""
    from vesper.graph import csr_kernels as kernels
    from vesper.parallel import pool
    from vesper.parallel.pool import threads_allowed

    smaller, larger = pairs_of(cells)  # (num_edges,) each
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    kernels.count_degrees(smaller, larger, indptr)
    np.cumsum(indptr, out=indptr)
    neighbors: Neighbors = np.empty(2 * len(cells), dtype=neighbor_dtype(num_nodes))
    kernels.scatter(smaller, larger, indptr[:-1].copy(), neighbors)
    pool.run(
        kernels.sort_rows,
        indptr,
        neighbors,
        np.zeros(num_nodes, dtype=np.int64),
        num_pieces=-(-num_nodes // kernels.ROWS),
        num_threads=threads_allowed(),
    )
    return Graph(indptr=indptr, neighbors=neighbors)


def descending_order(cells: Cells, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order by value, largest first; ties by a public hash of the cell, the same for all graphs."""
    mixed = cells.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # splitmix64
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.lexsort((mixed ^ (mixed >> np.uint64(31)), -values))
