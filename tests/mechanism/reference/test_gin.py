"""Claim S-GIN: the paper's Proposition 1 is correct and tight, and two rows move."""

import math

import numpy as np
import pytest

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import certify, moved_rows_by_edge
from vesper.mechanism.reference.gin import GinAggregation


def test_the_claim_of_the_paper_is_correct() -> None:
    assert GinAggregation().edge_sensitivity() == math.sqrt(2)
    assert GinAggregation().claimed_edge_sensitivity() == math.sqrt(2)


def test_moves_the_two_endpoints_and_no_other_row() -> None:
    for n in range(2, 6):
        for _, edge, moved in moved_rows_by_edge(GinAggregation().operator, num_nodes=n):
            assert moved == set(edge)


def test_tight() -> None:
    messages = np.array([[1.0, 0.0], [0.0, 1.0]])
    pair = Graph.from_edges(2, [(0, 1)])
    sums = [
        GinAggregation().aggregate(graph, messages) for graph in (pair, toggle_edge(pair, (0, 1)))
    ]
    assert np.linalg.norm(sums[0] - sums[1]) == pytest.approx(GinAggregation().edge_sensitivity())


def test_a_smaller_bound_is_caught() -> None:
    move = certify(GinAggregation().operator, num_nodes=3).move
    assert move <= GinAggregation().edge_sensitivity()
    assert move > 0.99 * GinAggregation().edge_sensitivity()


def test_the_own_message_does_not_depend_on_edges() -> None:
    graph = Graph.from_edges(3, [(0, 1)])
    operator = GinAggregation(own_scale=7.0).operator
    assert operator(graph).tolist() == [[7, 1, 0], [1, 7, 0], [0, 0, 7]]
    difference = operator(graph) - operator(toggle_edge(graph, (0, 1)))
    assert np.diag(difference).tolist() == [0, 0, 0]


def test_weights_are_functions_of_degrees_that_a_sampled_layer_can_use() -> None:
    degrees = np.array([0, 3, 9])
    assert GinAggregation().self_weight(degrees).tolist() == [1, 1, 1]
    assert GinAggregation().edge_weight(degrees, degrees[::-1]).tolist() == [1, 1, 1]
