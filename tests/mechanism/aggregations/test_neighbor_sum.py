"""Claim R-SUM: the production code keeps the bound on every small graph, and attains it."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import Edge, all_pairs, edges_of
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum

IDENTITY = STEPS * np.eye(6, dtype=np.int8)


def operator(graph: Graph) -> NDArray[np.float64]:
    """Matrix that the production code applies: its output for one-hot messages."""
    return _operator(graph.num_nodes, tuple(edges_of(graph)))


@cache
def _operator(num_nodes: int, edges: tuple[Edge, ...]) -> NDArray[np.float64]:
    one_hot = np.ascontiguousarray(IDENTITY[:num_nodes, :num_nodes])
    return NeighborSum().aggregate(Graph.from_edges(num_nodes, edges), one_hot, None) / STEPS


def certified_move(first: Graph, second: Graph) -> float:
    """An upper bound on the l2 move of the output over all messages of norm at most 1.

    sum_v ||sum_u D_vu m_u||^2 = sum_uw (D^T D)_uw <m_u, m_w> <= sum |D^T D|
    """
    difference = operator(first) - operator(second)
    return math.sqrt(float(np.abs(difference.T @ difference).sum()))


def moved_rows(first: Graph, second: Graph) -> set[int]:
    difference = operator(first) - operator(second)
    return set(np.flatnonzero(np.abs(difference).sum(axis=1)).tolist())


def holds(bound: float, largest: int) -> bool:
    return all(
        certified_move(first, second) <= bound + 1e-12
        for n in range(2, largest + 1)
        for first, second, _ in all_pairs(n)
    )


def test_holds_on_all_graphs_up_to_five_nodes_and_moves_the_endpoints() -> None:
    bound = NeighborSum().edge_sensitivity()
    checked = 0
    for n in range(2, 6):
        for first, second, edge in all_pairs(n):
            assert certified_move(first, second) <= bound + 1e-12
            assert moved_rows(first, second) == set(edge)
            checked += 1
    assert checked == 1 + 3 * 4 + 6 * 32 + 10 * 512


def test_a_smaller_bound_is_caught() -> None:
    assert holds(NeighborSum().edge_sensitivity(), 3)
    assert not holds(0.99 * NeighborSum().edge_sensitivity(), 3)


def test_tight() -> None:
    messages = np.array([[STEPS, 0], [0, STEPS]], dtype=np.int8)
    joined, apart = Graph.from_edges(2, [(0, 1)]), Graph.from_edges(2, [])
    sums = [NeighborSum().aggregate(graph, messages, None) / STEPS for graph in (joined, apart)]
    assert np.linalg.norm(sums[0] - sums[1]) == pytest.approx(NeighborSum().edge_sensitivity())


@pytest.mark.nightly
def test_holds_on_all_graphs_with_six_nodes() -> None:
    bound = NeighborSum().edge_sensitivity()
    assert all(certified_move(first, second) <= bound + 1e-12 for first, second, _ in all_pairs(6))


@given(
    st.integers(2, 40),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=200),
    st.integers(0, 2**32 - 1),
)
def test_equals_a_plain_loop(num_nodes: int, width: int, pairs: list[Edge], seed: int) -> None:
    graph = Graph.from_edges(num_nodes, [p for p in pairs if max(p) < num_nodes])
    rng = np.random.default_rng(seed)
    largest = int(STEPS / np.sqrt(width))
    messages = rng.integers(-largest, largest + 1, size=(num_nodes, width)).astype(np.int8)
    receivers = rng.permutation(num_nodes)[: num_nodes // 2 + 1]
    out = NeighborSum().aggregate(graph, messages, receivers)
    for row, v in zip(out, receivers, strict=True):
        expected = np.zeros(width, dtype=np.int64)
        for u in graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]]:
            expected += messages[u]
        assert row.tolist() == expected.tolist()


def test_only_receivers_move() -> None:
    messages = np.full((3, 1), STEPS, dtype=np.int8)
    receivers = np.array([2, 0])
    one, other = Graph.from_edges(3, [(0, 1)]), Graph.from_edges(3, [])
    sums = [NeighborSum().aggregate(graph, messages, receivers) for graph in (one, other)]
    assert (sums[0] - sums[1]).tolist() == [[0], [STEPS]]


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("degree", [1, 510, 511, 512, 1500])
def test_hubs_do_not_overflow_a_lane(degree: int, sign: int) -> None:
    star = Graph.from_edges(degree + 1, [(0, k) for k in range(1, degree + 1)])
    messages = np.zeros((degree + 1, 9), dtype=np.int8)
    messages[:, ::8] = np.array([sign * STEPS, 0], dtype=np.int8)
    out = NeighborSum().aggregate(star, messages, np.array([0]))
    assert out.tolist() == [[sign * STEPS * degree, *[0] * 8]]


def test_long_messages_are_refused() -> None:
    with pytest.raises(InputError, match="sum of squares"):
        NeighborSum().aggregate(
            Graph.from_edges(2, [(0, 1)]), np.full((2, 2), STEPS, dtype=np.int8), None
        )
