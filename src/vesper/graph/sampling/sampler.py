"""Neighbour sampling (the paper's Algorithm 1, lines 1 to 3): L hops, at most D neighbours each.

    S_0 = roots;   for hop = 1 .. L:
        N_hop(v) = all neighbours of v if there are at most D, else a uniform D-subset;  v in S
        S = S + union of N_hop(v)

A node reached from several roots is sampled once per hop, as in DGL's message-flow blocks. The
result depends only on graph, roots, seed and step, not on the number of threads or earlier calls.
"""

from collections.abc import Callable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.graph import Graph, Neighbors
from vesper.graph.sampling.expand import ROWS_A_PIECE, draw_rows, hop_key, measure_rows
from vesper.graph.sampling.relabel import (
    EDGES_A_PIECE,
    WORDS_A_PIECE,
    find_new_nodes,
    look_up,
    mark,
    place_new_nodes,
    place_roots,
)
from vesper.graph.sampling.subgraph import Block, Subgraph
from vesper.parallel.pool import run, threads_allowed

EDGES_A_THREAD = 1 << 14
"""Sampled edges per thread below which waking another thread does not pay off."""

DrawRows = Callable[[NDArray[np.int64], np.uint64], tuple[NDArray[np.int64], Neighbors]]
"""(receivers, key of the hop) -> (indptr of the sample, drawn node numbers)."""

MOST_PLACES = int(np.iinfo(np.int32).max)
"""Largest number of edges plus receivers of a hop, as blocks have int32 indices."""


class Sampler:
    """Sampler of successive batches from one graph.

    Its scratch takes 4 bytes per node, plus one bit per node for each thread. Calls from several
    threads run one at a time.

    Args:
        graph: graph to sample from, with fewer than 2^32 nodes.
        num_layers: L, number of hops from the roots, at least 1.
        max_degree: D, neighbours per node and hop, at least 1; `graph.num_nodes` takes all.
        seed: from 0 to 2^64 - 1.
        num_threads: maximum number of threads, all that are allowed if None; the result is the
            same for any number.
        draw: function that draws the same rows elsewhere, by `subgraph.sample_rows`; rows are
            drawn in this process if None.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        num_layers: int,
        max_degree: int,
        seed: int,
        num_threads: int | None = None,
        draw: DrawRows | None = None,
    ) -> None:
        threads = threads_allowed() if num_threads is None else num_threads
        for name, value in (
            ("num_layers", num_layers),
            ("max_degree", max_degree),
            ("num_threads", threads),
        ):
            if value < 1:
                raise InputError(f"{name}: expected at least 1, got {value}")
        if graph.num_nodes >= 1 << 32:
            raise InputError(f"graph: expected fewer than 2^32 nodes, got {graph.num_nodes}")
        self._graph, self._num_layers, self._num_threads = graph, num_layers, threads
        self._max_degree = min(max_degree, graph.num_nodes)
        _check_word("seed", seed)
        self._seed = seed
        # Plain arrays: Numba takes its slow path for memory maps, at each call.
        self._indptr, self._neighbors = np.asarray(graph.indptr), np.asarray(graph.neighbors)
        num_words = (graph.num_nodes + 63) // 64
        self._seen = np.zeros(num_words, dtype=np.uint64)
        self._marks = np.zeros((threads, num_words), dtype=np.uint64)
        self._taken = np.zeros((threads, 1), dtype=np.uint64)
        self._places = np.zeros(graph.num_nodes, dtype=np.int32)
        self._draw, self._lock = draw, Lock()

    def sample(self, roots: NDArray[np.int64], *, step: int) -> Subgraph:
        """Sample the batch of one step.

        Args:
            roots: (num_roots,) distinct node numbers; may be empty.
            step: number of the batch, from 0 to 2^64 - 1; each step has new draws.

        Returns:
            The subgraph, with its nodes in a fixed order, roots first.
        """
        roots = self._check_roots(roots)
        _check_word("step", step)
        with self._lock:
            self._seen.fill(0)
            self._marks.fill(0)  # an interrupted call may have left some
            if place_roots(roots, self._seen, self._places):
                values, counts = np.unique(roots, return_counts=True)
                repeated = values[counts > 1]
                raise InputError(
                    f"roots: expected distinct nodes, got {len(repeated)} of them more than once "
                    f"({first_three(repeated)}); pass each root once"
                )
            nodes, layers = roots, []
            for hop in range(1, self._num_layers + 1):
                nodes, block = self._expand(nodes, hop_key(self._seed, step, hop))
                layers.append(block)
        return Subgraph(nodes=nodes, layers=tuple(reversed(layers)))

    def _expand(
        self, receivers: NDArray[np.int64], key: np.uint64
    ) -> tuple[NDArray[np.int64], Block]:
        """Sample a row for each receiver; return all nodes known so far, and the rows."""
        if self._draw is None:
            indptr, samples, threads = self._draw_here(receivers, key)
        else:
            indptr, samples = self._draw(receivers, key)
            threads = self._threads_for(receivers, indptr)
            mark(samples, self._marks[0])
        num_edges = len(samples)
        marks = self._marks[:threads]  # (threads, num_words)
        counts = np.empty(-(-marks.shape[1] // WORDS_A_PIECE) + 1, dtype=np.int64)
        find_new_nodes(marks, self._seen, counts)
        nodes = np.empty(len(receivers) + int(counts[-1]), dtype=np.int64)
        nodes[: len(receivers)] = receivers
        run(
            place_new_nodes,
            marks[0],
            counts,
            len(receivers),
            nodes,
            self._places,
            num_pieces=len(counts) - 1,
            num_threads=threads,
        )
        indices = np.empty(num_edges, dtype=np.int32)
        run(
            look_up,
            samples,
            self._places,
            indices,
            num_pieces=-(-num_edges // EDGES_A_PIECE),
            num_threads=threads,
        )
        return nodes, Block(indptr.astype(np.int32), indices, num_senders=len(nodes))

    def _draw_here(
        self, receivers: NDArray[np.int64], key: np.uint64
    ) -> tuple[NDArray[np.int64], Neighbors, int]:
        """Draw rows in this process and mark their nodes; also return the threads used."""
        starts, degrees = np.empty_like(receivers), np.empty_like(receivers)  # (num_receivers,)
        indptr = np.empty(len(receivers) + 1, dtype=np.int64)
        longest = measure_rows(self._indptr, receivers, self._max_degree, starts, degrees, indptr)
        threads = self._threads_for(receivers, indptr)
        if self._taken.shape[1] * 64 < longest:
            self._taken = np.zeros((self._num_threads, longest // 64 + 1), dtype=np.uint64)
        samples = np.empty(int(indptr[-1]), dtype=self._neighbors.dtype)
        rows = (self._neighbors, receivers, starts, degrees, indptr, key)
        run(
            draw_rows,
            *rows,
            samples,
            self._taken,
            self._marks[:threads],
            num_pieces=-(-len(receivers) // ROWS_A_PIECE),
            num_threads=threads,
        )
        return indptr, samples, threads

    def _threads_for(self, receivers: NDArray[np.int64], indptr: NDArray[np.int64]) -> int:
        """Return the number of threads for a hop; refuse a hop that is too large."""
        num_edges = int(indptr[-1])
        if num_edges + len(receivers) > MOST_PLACES:
            raise InputError(
                f"a hop would sample {num_edges} edges for {len(receivers)} nodes, more than "
                f"{MOST_PLACES} together; use smaller batches, fewer layers or a lower max_degree"
            )
        return min(self._num_threads, max(1, num_edges // EDGES_A_THREAD))

    def _check_roots(self, roots: NDArray[np.int64]) -> NDArray[np.int64]:
        if roots.ndim != 1 or not np.issubdtype(roots.dtype, np.integer):
            raise InputError(
                f"roots: expected a one-dimensional integer array, got {roots.dtype} of shape "
                f"{roots.shape}"
            )
        outside = roots[(roots < 0) | (roots >= self._graph.num_nodes)]
        if len(outside):
            raise InputError(
                f"roots: expected node numbers from 0 to {self._graph.num_nodes - 1}, got "
                f"{len(outside)} others ({first_three(outside)})"
            )
        return np.array(roots, dtype=np.int64)  # a copy: the subgraph keeps it


def sample(
    graph: Graph,
    roots: NDArray[np.int64],
    *,
    num_layers: int,
    max_degree: int,
    seed: int,
    step: int,
    num_threads: int | None = None,
) -> Subgraph:
    """Sample one batch; for several batches create a `Sampler`, which reuses its scratch."""
    sampler = Sampler(
        graph, num_layers=num_layers, max_degree=max_degree, seed=seed, num_threads=num_threads
    )
    return sampler.sample(roots, step=step)


def _check_word(name: str, value: int) -> None:
    if not 0 <= value < 1 << 64:
        raise InputError(f"{name}: expected a number from 0 to 2^64 - 1, got {value}")
