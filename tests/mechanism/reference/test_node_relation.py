"""Claim N-NODE: all edges of one node, with clipped rows; the paper's bound is refuted."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import all_graphs, edges_of
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import moved_rows
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.linear import degrees_of
from vesper.mechanism.reference.node_relation import (
    ClippedNeighborSum,
    claimed_node_sensitivity,
    clip_rows,
    isolate,
)

Floats = NDArray[np.float64]


def star(leaves: int) -> Graph:
    return Graph.from_edges(leaves + 1, [(0, 1 + k) for k in range(leaves)])


def sums(graph: Graph, messages: Floats) -> Floats:
    return GinAggregation(own_scale=0.0).aggregate(graph, messages)


def largest_move(aggregation: ClippedNeighborSum, num_nodes: int) -> tuple[float, int]:
    """Largest move, and most rows moved, over all admitted graphs, all nodes and all signs."""
    signs = product([[-1.0], [1.0]], repeat=num_nodes - 1)
    messages = [np.array([[1.0], *each]) for each in signs]
    outputs = {
        frozenset(edges_of(graph)): np.array([aggregation.aggregate(graph, m) for m in messages])
        for graph in all_graphs(num_nodes)
        if degrees_of(graph).max() <= aggregation.max_degree
    }  # each (choices, num_nodes, 1)
    largest, most_rows = 0.0, 0
    for edges, before in outputs.items():
        for node in range(num_nodes):
            remaining = frozenset(edge for edge in edges if node not in edge)
            difference = before - outputs[remaining]
            largest = max(largest, float(np.linalg.norm(difference, axis=(1, 2)).max()))
            rows = int(moved_rows(difference).sum(axis=1).max())
            assert rows <= len(edges) - len(remaining) + 1
            most_rows = max(most_rows, rows)
    return largest, most_rows


@pytest.mark.parametrize(("max_degree", "row_norm"), [(2, 1.0), (3, math.sqrt(3)), (4, 2.0)])
def test_holds_for_all_signs_on_all_graphs_up_to_five_nodes(
    max_degree: int, row_norm: float
) -> None:
    aggregation = ClippedNeighborSum(max_degree=max_degree, row_norm=row_norm)
    moves = [largest_move(aggregation, n) for n in range(2, 6)]
    largest = max(move for move, _ in moves)
    assert largest <= aggregation.node_sensitivity()
    assert largest > 0.99 * aggregation.node_sensitivity()
    assert max(rows for _, rows in moves) == max_degree + 1


@pytest.mark.nightly
def test_holds_for_all_signs_on_all_graphs_with_six_nodes() -> None:
    aggregation = ClippedNeighborSum(max_degree=5, row_norm=2.5)  # 5 admits every graph
    largest, most_rows = largest_move(aggregation, 6)
    assert 0.99 * aggregation.node_sensitivity() < largest <= aggregation.node_sensitivity()
    assert most_rows == 6


@pytest.mark.parametrize("max_degree", [1, 2, 20])
def test_tight_on_a_star(max_degree: int) -> None:
    aggregation = ClippedNeighborSum(max_degree=max_degree, row_norm=math.sqrt(max_degree))
    graph, ones = star(max_degree), np.ones((max_degree + 1, 1))
    moved = aggregation.aggregate(graph, ones) - aggregation.aggregate(isolate(graph, 0), ones)
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(2 * max_degree))
    assert aggregation.node_sensitivity() == pytest.approx(math.sqrt(2 * max_degree))


@given(st.integers(0, 2**32 - 1))
def test_holds_on_random_graphs_with_wide_messages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    pairs = rng.integers(0, n, size=(int(rng.integers(1, 60)), 2)).tolist()
    graph = Graph.from_edges(n, [(a, b) for a, b in pairs])
    max_degree = max(1, int(degrees_of(graph).max()))
    aggregation = ClippedNeighborSum(max_degree=max_degree, row_norm=math.sqrt(max_degree))
    messages = rng.standard_normal((n, 4))
    messages /= np.linalg.norm(messages, axis=1, keepdims=True)
    node = int(rng.integers(0, n))
    moved = aggregation.aggregate(graph, messages) - aggregation.aggregate(
        isolate(graph, node), messages
    )
    assert np.linalg.norm(moved) <= aggregation.node_sensitivity()
    near = {node, *graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]].tolist()}
    assert set(np.flatnonzero(np.abs(moved).sum(axis=1)).tolist()) <= near


def test_refuted_one_plus_root_d_times_s() -> None:
    graph, ones = star(20), np.ones((21, 1))
    move = float(np.linalg.norm(sums(graph, ones) - sums(isolate(graph, 0), ones)))
    assert move == pytest.approx(math.sqrt(20 + 20**2))
    assert move == pytest.approx(20.5, abs=0.01)
    claimed = claimed_node_sensitivity(max_degree=20, edge_sensitivity=math.sqrt(2))
    assert claimed == pytest.approx(7.32, abs=0.01)
    assert move > 2.7 * claimed


@pytest.mark.parametrize(("max_degree", "refuted"), [(1, False), (2, False), (3, True), (50, True)])
def test_the_paper_is_refuted_from_degree_three_on(max_degree: int, refuted: bool) -> None:
    claimed = claimed_node_sensitivity(max_degree=max_degree, edge_sensitivity=math.sqrt(2))
    assert (math.sqrt(max_degree + max_degree**2) > claimed) == refuted


def test_deleting_edges_to_keep_the_promise_is_not_stable() -> None:
    # Keep an edge if both endpoints have capacity left. Without the edges of node 0, the choice
    # changes along the whole path, far from any neighbour of node 0.
    def capped(graph: Graph) -> set[tuple[int, int]]:
        capacity = [1] * graph.num_nodes
        kept_edges = set()
        for a, b in edges_of(graph):
            if capacity[a] and capacity[b]:
                capacity[a], capacity[b] = capacity[a] - 1, capacity[b] - 1
                kept_edges.add((a, b))
        return kept_edges

    path = Graph.from_edges(8, [(v, v + 1) for v in range(7)])
    before, after = capped(path), capped(isolate(path, 0))
    assert before == {(0, 1), (2, 3), (4, 5), (6, 7)}
    assert after == {(1, 2), (3, 4), (5, 6)}


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 3.0))
def test_clipping_never_moves_two_rows_further_apart(seed: int, norm: float) -> None:
    first, second = np.random.default_rng(seed).standard_normal((2, 30, 3))
    distances = np.linalg.norm(clip_rows(first, norm=norm) - clip_rows(second, norm=norm), axis=1)
    assert (distances <= np.linalg.norm(first - second, axis=1) + 1e-12).all()
    assert (np.linalg.norm(clip_rows(first, norm=norm), axis=1) <= norm * (1 + 1e-12)).all()


def test_refuses_a_graph_that_breaks_the_promise() -> None:
    with pytest.raises(InputError, match=r"more at 1 nodes .first 1: 0.; set a larger"):
        ClippedNeighborSum(max_degree=3, row_norm=1.0).aggregate(star(4), np.ones((5, 1)))


def test_refuses_invalid_parameters() -> None:
    with pytest.raises(InputError, match="max_degree"):
        ClippedNeighborSum(max_degree=0, row_norm=1.0)
    for row_norm in (0.5, 4.1, math.nan):
        with pytest.raises(InputError, match="row_norm"):
            ClippedNeighborSum(max_degree=4, row_norm=row_norm)
    with pytest.raises(InputError, match="node"):
        isolate(star(2), 3)
