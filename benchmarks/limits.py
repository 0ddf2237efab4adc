"""Limits of the machine: rate of random memory reads, and how many a batch cannot avoid."""

from time import perf_counter
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors
from vesper.graph.sampling.subgraph import Subgraph
from vesper.parallel.intrinsics import prefetch
from vesper.parallel.pool import Work, finish, run, take

LINE = 64
"""Bytes in a cache line."""

PIECES, READS_A_PIECE = 64, 1 << 14
PREFETCH_DISTANCE = np.uint64(64)
"""Reads requested before the first is waited for: more than a core can have in flight."""


def random_reads_a_second(
    neighbors: NDArray[Any],
    *,
    threads: int,
    repeats: int = 20,
    entries: NDArray[np.int64] | None = None,
) -> float:
    """Best rate of reads of random entries, or of given ones repeatedly, requested well ahead."""
    num_reads = PIECES * READS_A_PIECE
    if entries is None:
        entries = np.random.default_rng(0).integers(
            0, len(neighbors), num_reads + int(PREFETCH_DISTANCE)
        )
    entries = np.resize(entries, num_reads + int(PREFETCH_DISTANCE))
    sums = np.empty(PIECES, dtype=np.int64)  # written, so that no read can be optimised away
    seconds = []
    for _ in range(1 + repeats):
        start = perf_counter()
        run(_read, neighbors, entries, sums, num_pieces=PIECES, num_threads=threads)
        seconds.append(perf_counter() - start)
    return num_reads / min(seconds[1:])


def lines_touched(graph: Graph, subgraph: Subgraph) -> int:
    """Number of distinct cache lines of the neighbour array that hold the sample."""
    lines = [np.empty(0, dtype=np.int64)]
    for block in subgraph.layers:
        entries = np.empty(len(block.indices), dtype=np.int64)
        _find_entries(
            graph.indptr, graph.neighbors, subgraph.nodes, block.indptr, block.indices, entries
        )
        lines.append(entries * graph.neighbors.itemsize // LINE)
    return len(np.unique(np.concatenate(lines)))


@njit(cache=True, nogil=True)
def _read(
    work: Work,
    thread: int,
    neighbors: Neighbors,
    entries: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    piece = take(work)
    while piece >= 0:
        first = piece * READS_A_PIECE
        total = np.int64(0)
        for k in range(np.uint64(first), np.uint64(first + READS_A_PIECE)):
            prefetch(neighbors, entries[k + PREFETCH_DISTANCE])
            total += neighbors[np.uint64(entries[k])]
        sums[piece] = total
        finish(work)
        piece = take(work)


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
