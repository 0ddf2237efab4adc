"""Numba kernels of `csr.py`, compiled on first use and cached on disk."""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

ROWS = 4096
"""Rows per piece."""


@cached_njit
def count_degrees(src: NDArray[np.int64], dst: NDArray[np.int64], indptr: NDArray[np.int64]) -> int:
    """Count each row at indptr[endpoint + 1] for both ends; return the number of self-loops."""
    self_loops = 0
    for k in range(len(src)):
        if src[k] == dst[k]:
            self_loops += 1
        else:
            indptr[src[k] + 1] += 1
            indptr[dst[k] + 1] += 1
    return self_loops


@cached_njit
def scatter(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    cursor: NDArray[np.int64],
    neighbors: Neighbors,
) -> None:
    """Write each endpoint into the row of the other."""
    for k in range(len(src)):
        u, v = src[k], dst[k]
        if u != v:
            neighbors[cursor[u]] = v
            cursor[u] += 1
            neighbors[cursor[v]] = u
            cursor[v] += 1


@cached_njit
def sort_rows(
    work: Work,
    thread: int,
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    lengths: NDArray[np.int64],
) -> None:
    """Sort each row and move its distinct values to the front; lengths[v] is their number."""
    num_nodes = len(indptr) - 1
    piece = take(work)
    while piece >= 0:
        for v in range(piece * ROWS, min((piece + 1) * ROWS, num_nodes)):
            row = neighbors[indptr[v] : indptr[v + 1]]
            row.sort()
            length = min(len(row), 1)
            for k in range(1, len(row)):
                if row[k] != row[length - 1]:
                    row[length] = row[k]
                    length += 1
            lengths[v] = length
        finish(work)
        piece = take(work)


@cached_njit
def move_together(
    indptr: NDArray[np.int64], neighbors: Neighbors, lengths: NDArray[np.int64]
) -> None:
    """Close the gaps left by merged entries; rows only move towards the front."""
    at = 0
    for v in range(len(lengths)):
        start = indptr[v]
        if start != at:
            for k in range(lengths[v]):
                neighbors[at + k] = neighbors[start + k]
        at += lengths[v]
