"""Claim S-GCN-RELEASED: GCN weights from released degrees cost as much as the sum."""

import math

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import all_pairs, toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import certified_move, moved_rows
from vesper.mechanism.reference.gcn_released import ReleasedGcn
from vesper.mechanism.reference.linear import degrees_of

PAIR = Graph.from_edges(2, [(0, 1)])


def test_tight_where_released_degrees_are_not_positive() -> None:
    aggregation = ReleasedGcn(np.array([0.0, -3.2]))
    messages = np.array([[1.0], [-1.0]])
    sums = [aggregation.aggregate(each, messages) for each in (PAIR, toggle_edge(PAIR, (0, 1)))]
    move = float(np.linalg.norm(sums[0] - sums[1]))
    assert move == pytest.approx(aggregation.edge_sensitivity())
    assert move > 0.99 * aggregation.edge_sensitivity()


def test_moves_the_endpoints_by_the_public_weights_of_each_other() -> None:
    aggregation = ReleasedGcn(np.array([-1.0, 0.5, 2.0, 7.9]))
    for first, second, (a, b) in all_pairs(4):
        difference = aggregation.operator(first) - aggregation.operator(second)
        assert np.flatnonzero(moved_rows(difference)).tolist() == [a, b]
        exact = math.hypot(aggregation.node_weights[a], aggregation.node_weights[b])
        assert float(certified_move(difference)) == pytest.approx(exact)


def test_is_gcn_where_the_released_degrees_are_the_true_ones() -> None:
    graph = Graph.from_edges(4, [(0, 1), (1, 2), (1, 3)])
    degrees = degrees_of(graph)
    messages = np.eye(4)
    aggregation = ReleasedGcn(degrees.astype(np.float64))
    out = aggregation.weigh_receivers(aggregation.aggregate(graph, messages))
    for v in range(4):
        for u in graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]]:
            expected = 1 / math.sqrt((degrees[u] + 1) * (degrees[v] + 1))
            assert out[v, u] == pytest.approx(expected)


def test_reads_no_true_degree() -> None:
    # A common neighbour has the same weight in two graphs whose degrees differ everywhere.
    aggregation = ReleasedGcn(np.array([3.0, 1.0, 1.0, 1.0]))
    star = Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)])
    assert aggregation.operator(star)[1, 0] == aggregation.operator(toggle_edge(star, (0, 2)))[1, 0]


def test_refuses_invalid_released_degrees() -> None:
    for degrees in (np.array([1.0, np.nan]), np.array([1.0, np.inf]), np.ones((2, 1))):
        with pytest.raises(InputError, match="released_degrees"):
            ReleasedGcn(degrees)
    with pytest.raises(InputError, match="expected 2, one per node, got 3"):
        ReleasedGcn(np.ones(3)).operator(PAIR)
