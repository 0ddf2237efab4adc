"""The kernel against a matrix product, for every way of splitting columns into lanes."""

import subprocess
import sys
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations import aggregation
from vesper.mechanism.aggregations.grid import padded_rows
from vesper.mechanism.aggregations.neighbor_sum import COLUMNS_AT_ONCE, sums_of_rows
from vesper.mechanism.aggregations.sum_kernels import CAPACITY

WIDTHS = [
    *range(1, COLUMNS_AT_ONCE + 20),
    2 * COLUMNS_AT_ONCE - 1,
    2 * COLUMNS_AT_ONCE,
    3 * COLUMNS_AT_ONCE + 1,
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    """2,100 nodes, more than two pieces of rows; one is a hub that fills lanes four times."""
    rng = np.random.default_rng(0)
    spokes = [(0, k) for k in range(1, 4 * CAPACITY + 8)]
    return Graph.from_edges(2_100, [*spokes, *rng.integers(0, 2_100, (6_000, 2)).tolist()])


@pytest.mark.parametrize("width", WIDTHS)
def test_equals_the_matrix_product(graph: Graph, width: int) -> None:
    largest = int(64 / np.sqrt(width))
    rng = np.random.default_rng(width)
    messages = rng.integers(-largest, largest + 1, (graph.num_nodes, width)).astype(np.int8)
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    adjacency[np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr)), graph.neighbors] = 1
    receivers = rng.permutation(graph.num_nodes)
    starts, stops = graph.indptr[receivers], graph.indptr[receivers + 1]
    for rows in (messages, padded_rows(messages)):
        sums = sums_of_rows(starts, stops, np.asarray(graph.neighbors), width, rows)
        assert (sums == (adjacency @ messages)[receivers]).all()


@pytest.mark.parametrize("size", [-64, 64])
@pytest.mark.parametrize("width", [1, 3, 7, 15, 16, 47, 64, 100])
def test_lanes_are_emptied_before_they_overflow(graph: Graph, width: int, size: int) -> None:
    messages = np.full((graph.num_nodes, width), size, dtype=np.int8)  # longer than may be released
    arrays = graph.indptr[:1], graph.indptr[1:2], np.asarray(graph.neighbors)
    degree = int(graph.indptr[1])
    assert degree > 4 * CAPACITY
    assert sums_of_rows(*arrays, width, messages).tolist() == [[size * degree] * width]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_node_numbers_of_either_dtype(graph: Graph, dtype: Any) -> None:
    messages = np.ones((graph.num_nodes, 20), dtype=np.int8)
    neighbors: NDArray[Any] = np.asarray(graph.neighbors).astype(dtype)
    sums = sums_of_rows(graph.indptr[:-1], graph.indptr[1:], neighbors, 20, messages)
    assert (sums == np.diff(graph.indptr)[:, None]).all()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(
    graph: Graph, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = np.random.default_rng(0).integers(-9, 10, (graph.num_nodes, 47)).astype(np.int8)
    arrays = graph.indptr[:-1], graph.indptr[1:], np.asarray(graph.neighbors)
    monkeypatch.setattr(aggregation, "threads_allowed", lambda: 1)
    alone = sums_of_rows(*arrays, 47, messages)
    monkeypatch.setattr(aggregation, "threads_allowed", lambda: threads)
    assert (alone == sums_of_rows(*arrays, 47, messages)).all()


def test_messages_of_width_0_have_sums_of_width_0(graph: Graph) -> None:
    nothing = np.empty((graph.num_nodes, 0), dtype=np.int8)
    arrays = graph.indptr[:5], graph.indptr[1:6], np.asarray(graph.neighbors)
    assert sums_of_rows(*arrays, 0, nothing).shape == (5, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="protects a page of memory with mprotect")
def test_reads_no_byte_outside_the_messages() -> None:
    """Messages end where a protected page starts; reading one more byte kills the process."""
    script = """
        import ctypes, mmap
        import numpy as np
        from vesper.mechanism.aggregations.neighbor_sum import sums_of_rows

        pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        whole = np.frombuffer(pages, dtype=np.int8)
        last = ctypes.c_void_p(whole.ctypes.data + mmap.PAGESIZE)
        assert ctypes.CDLL(None).mprotect(last, mmap.PAGESIZE, 0) == 0
        indptr, neighbors = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)
        for width in range(1, 200):
            messages = whole[mmap.PAGESIZE - 2 * width : mmap.PAGESIZE].reshape(2, width)
            sums_of_rows(indptr[:-1], indptr[1:], neighbors, width, messages)
        print("alive", flush=True)
        import os; os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "alive\n", done.stderr
