"""Undirected graphs of a given size with log-normal degrees and random ids, directly as CSR.

    edge {u, v}:  u and v drawn independently, node w with probability ~ weight(w)   (Chung-Lu)
    weight      = lognormal(sigma = 1.1): mean degree twice the median, hubs of thousands

Ids carry no locality, the worst case for caches. Self-loops are dropped and duplicates merged, so
the graph is slightly smaller than requested. Edges are generated twice from one seed, never stored.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vesper.graph import csr_kernels
from vesper.graph.graph import Graph, neighbor_dtype
from vesper.parallel.pool import run, threads_allowed

CHUNK = 1 << 20
TICKETS_PER_NODE = 8


def synthetic_graph(num_nodes: int, num_edges: int, *, seed: int = 0) -> Graph:
    """Graph with about num_edges undirected edges; 124 million directed ones take about 20 s."""
    tickets = _tickets(num_nodes, seed)
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    for src, dst in _pairs(tickets, num_edges, seed):
        csr_kernels.count_degrees(src, dst, indptr)
    np.cumsum(indptr, out=indptr)
    neighbors = np.empty(int(indptr[-1]), dtype=neighbor_dtype(num_nodes))
    cursor = indptr[:-1].copy()
    for src, dst in _pairs(tickets, num_edges, seed):
        csr_kernels.scatter(src, dst, cursor, neighbors)
    lengths = np.zeros(num_nodes, dtype=np.int64)
    run(
        csr_kernels.sort_rows,
        indptr,
        neighbors,
        lengths,
        num_pieces=-(-num_nodes // csr_kernels.ROWS),
        num_threads=threads_allowed(),
    )
    csr_kernels.move_together(indptr, neighbors, lengths)
    np.cumsum(lengths, out=indptr[1:])
    return Graph(indptr, neighbors[: indptr[-1]])


def _tickets(num_nodes: int, seed: int) -> NDArray[np.int64]:
    """Every node in proportion to its weight: drawing a ticket draws a node by weight."""
    weights = np.random.default_rng((seed, 0)).lognormal(sigma=1.1, size=num_nodes)
    times = np.rint(weights * (TICKETS_PER_NODE / weights.mean())).astype(np.int64)
    return np.repeat(np.arange(num_nodes), np.maximum(times, 1))


def _pairs(
    tickets: NDArray[np.int64], num_edges: int, seed: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    generator = np.random.default_rng((seed, 1))
    for start in range(0, num_edges, CHUNK):
        size = min(CHUNK, num_edges - start)
        src, dst = tickets[generator.integers(0, len(tickets), (2, size))]  # (2, size)
        yield src, dst
