"""Claim S-MEAN-CLAMP: 2 sqrt 2 / (m + 1), attained, two rows."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import certify, moved_rows_by_edge
from vesper.mechanism.reference.mean_clamped import ClampedMean


@pytest.mark.parametrize("min_degree", [1, 2, 3, 5, 20])
def test_tight(min_degree: int, double_star: Callable[[int], Graph]) -> None:
    aggregation = ClampedMean(min_degree=min_degree)
    assert aggregation.edge_sensitivity() == pytest.approx(2 * math.sqrt(2) / (min_degree + 1))
    graph = double_star(min_degree)
    messages = -np.ones((graph.num_nodes, 1))
    messages[:2] = 1.0
    means = [aggregation.aggregate(each, messages) for each in (graph, toggle_edge(graph, (0, 1)))]
    move = float(np.linalg.norm(means[0] - means[1]))
    assert move == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)


@pytest.mark.parametrize("min_degree", [1, 2, 3])
def test_a_smaller_bound_is_caught(min_degree: int) -> None:
    # Two nodes with m common neighbours are enough.
    aggregation = ClampedMean(min_degree=min_degree)
    move = certify(aggregation.operator, num_nodes=min_degree + 2).move
    assert 0.99 * aggregation.edge_sensitivity() < move <= aggregation.edge_sensitivity()


@pytest.mark.parametrize("min_degree", [1, 2, 3])
def test_moves_the_two_endpoints_and_no_other_row(min_degree: int) -> None:
    for _, edge, moved in moved_rows_by_edge(
        ClampedMean(min_degree=min_degree).operator, num_nodes=5
    ):
        assert moved == set(edge)


def test_is_the_mean_above_the_clamp_and_shrinks_below() -> None:
    star = Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)])
    ones = np.ones((4, 1))
    assert ClampedMean(min_degree=3).aggregate(star, ones)[:, 0].tolist() == pytest.approx(
        [1.0, 1 / 3, 1 / 3, 1 / 3]
    )


def test_weights_are_functions_of_degrees_that_a_sampled_layer_can_use() -> None:
    aggregation = ClampedMean(min_degree=2)
    weights = aggregation.edge_weight(np.array([9, 9, 9]), np.array([1, 2, 4]))
    assert weights.tolist() == [0.5, 0.5, 0.25]
    assert aggregation.self_weight(np.array([1, 2])).tolist() == [0, 0]


def test_refuses_a_clamp_below_one() -> None:
    with pytest.raises(InputError, match="min_degree"):
        ClampedMean(min_degree=0)
