from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.graph.sampling.expand import ROWS_A_PIECE, draw_rows, hop_key, measure_rows
from vesper.parallel.pool import Work, run

Kernel = Callable[..., None]


def ring(num_nodes: int, reach: int) -> Graph:
    """Link every node to its `reach` successors and predecessors."""
    steps = [k for k in range(-reach, reach + 1) if k]
    rows = np.sort((np.arange(num_nodes)[:, None] + steps) % num_nodes, axis=1)
    indptr = np.arange(num_nodes + 1) * (2 * reach)
    return Graph(indptr, rows.reshape(-1).astype(np.int32))


def draw(
    graph: Graph, nodes: NDArray[np.int64], max_degree: int, kernel: Kernel = draw_rows
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64], NDArray[np.uint64]]:
    starts, degrees = np.empty_like(nodes), np.empty_like(nodes)
    indptr = np.empty(len(nodes) + 1, dtype=np.int64)
    longest = measure_rows(graph.indptr, nodes, max_degree, starts, degrees, indptr)
    np.testing.assert_array_equal(starts, graph.indptr[nodes])
    np.testing.assert_array_equal(degrees, np.diff(graph.indptr)[nodes])
    assert longest == degrees.max()
    drawn = np.empty(indptr[-1], dtype=np.int32)
    taken = np.zeros((2, longest // 64 + 1), dtype=np.uint64)
    marks = np.zeros((2, graph.num_nodes // 64 + 1), dtype=np.uint64)
    run(
        kernel,
        graph.neighbors,
        nodes,
        starts,
        degrees,
        indptr,
        hop_key(1, 2, 3),
        drawn,
        taken,
        marks,
        num_pieces=-(-len(nodes) // ROWS_A_PIECE),
        num_threads=2,
    )
    return indptr, drawn, taken, marks


def test_rows_over_several_pieces_short_and_long() -> None:
    for reach in (3, 20, 60):  # whole rows, one word of positions, several words
        graph = ring(2 * ROWS_A_PIECE + 7, reach)
        nodes = np.random.default_rng(0).permutation(graph.num_nodes)
        indptr, drawn, taken, marks = draw(graph, nodes, max_degree=9)
        assert np.diff(indptr).tolist() == [min(9, 2 * reach)] * len(nodes)
        for node, row in zip(nodes.tolist(), drawn.reshape(len(nodes), -1).tolist(), strict=True):
            true = graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]].tolist()
            assert len(set(row)) == len(row)
            assert set(row) <= set(true)
        assert not taken.any()
        union = np.bitwise_or.reduce(marks, axis=0)  # (num_words,)
        bits = np.unpackbits(union.view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == sorted(set(drawn.tolist()))


def test_a_thread_marks_its_own_bitmap() -> None:
    def as_second_thread(work: Work, thread: int, *arguments: Any) -> None:
        draw_rows(work, 1, *arguments)

    _, drawn, _, marks = draw(ring(100, 20), np.arange(100), 9, kernel=as_second_thread)
    assert not marks[0].any()
    assert np.bitwise_count(marks[1]).sum() == len(set(drawn.tolist()))
