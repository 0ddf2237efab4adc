"""What the machine allows a sampler: random reads of memory, and how many a batch cannot avoid."""

from time import perf_counter

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors
from vesper.graph.intrinsics import prefetch
from vesper.graph.subgraph import Subgraph

LINE = 64
"""Bytes of a cache line."""

READS = 1_000_000
AHEAD = 64


def random_reads_a_second(neighbors: Neighbors, *, threads: int, repeats: int = 5) -> float:
    """Reads of random entries, asked for well ahead: the best of several."""
    entries = np.random.default_rng(0).integers(0, len(neighbors), READS)
    _read(neighbors, entries, threads)
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        _read(neighbors, entries, threads)
        seconds.append(perf_counter() - start)
    return READS / min(seconds)


def lines_touched(graph: Graph, subgraph: Subgraph) -> int:
    """Distinct cache lines of the neighbour array that hold what was sampled."""
    lines = [np.empty(0, dtype=np.int64)]
    for block in subgraph.layers:
        entries = np.empty(len(block.indices), dtype=np.int64)
        _find_entries(
            graph.indptr, graph.neighbors, subgraph.nodes, block.indptr, block.indices, entries
        )
        lines.append(entries * graph.neighbors.itemsize // LINE)
    return len(np.unique(np.concatenate(lines)))


@njit(cache=True, parallel=True)
def _read(neighbors: Neighbors, entries: NDArray[np.int64], threads: int) -> int:
    total = 0
    for part in prange(threads):
        first, last = len(entries) * part // threads, len(entries) * (part + 1) // threads
        for k in range(first, last):
            prefetch(neighbors, entries[min(k + AHEAD, last - 1)])
            total += neighbors[entries[k]]
    return total


@njit(cache=True)
def _find_entries(
    graph_indptr: NDArray[np.int64],
    neighbors: Neighbors,
    nodes: NDArray[np.int64],
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    entries: NDArray[np.int64],
) -> None:
    for row in range(len(indptr) - 1):
        start, end = graph_indptr[nodes[row]], graph_indptr[nodes[row] + 1]
        for at in range(indptr[row], indptr[row + 1]):
            entries[at] = start + np.searchsorted(neighbors[start:end], nodes[indices[at]])
