"""Claim S-GCN-CLAMP: the bound is exact, and the rows that move are those of the claim."""

from collections.abc import Callable

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import certified_move, certify, moved_rows_by_edge
from vesper.mechanism.reference.gcn import GcnAggregation, largest_joint_move
from vesper.mechanism.reference.gcn_clamped import ClampedGcn
from vesper.mechanism.reference.linear import degrees_of


@pytest.mark.parametrize(
    ("min_degree", "expected"),
    [(1, 0.847), (2, 0.604), (3, 0.470), (5, 0.325), (10, 0.184), (20, 0.0986), (40, 0.0511)],
)
def test_values(min_degree: int, expected: float) -> None:
    value = ClampedGcn(min_degree=min_degree).edge_sensitivity()
    assert value == pytest.approx(expected, rel=1.5e-3)
    # Without a promise, and still no more than GCN with the promise.
    assert value == GcnAggregation(min_degree=min_degree).edge_sensitivity()


@pytest.mark.parametrize("min_degree", [1, 2, 3, 5, 10, 40])
def test_tight(min_degree: int, double_star: Callable[[int], Graph]) -> None:
    aggregation = ClampedGcn(min_degree=min_degree)
    graph = double_star(min_degree)
    messages = np.ones((graph.num_nodes, 1))
    messages[[1, *range(2 + min_degree, graph.num_nodes)]] = -1.0  # one star against the other
    sums = [aggregation.aggregate(each, messages) for each in (graph, toggle_edge(graph, (0, 1)))]
    move = float(np.linalg.norm(sums[0] - sums[1]))
    assert move == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)


@pytest.mark.parametrize("min_degree", [1, 2, 5])
def test_a_smaller_bound_is_caught(min_degree: int, double_star: Callable[[int], Graph]) -> None:
    aggregation = ClampedGcn(min_degree=min_degree)
    graph = double_star(min_degree)
    difference = aggregation.operator(graph) - aggregation.operator(toggle_edge(graph, (0, 1)))
    bound = aggregation.edge_sensitivity()
    assert 0.99 * bound < float(certified_move(difference)) <= bound


def test_the_path_on_four_nodes_attains_it_for_one() -> None:
    certificate = certify(ClampedGcn(min_degree=1).operator, num_nodes=4)
    assert certificate.move == pytest.approx(ClampedGcn(min_degree=1).edge_sensitivity(), rel=1e-9)
    assert certificate.worst is not None
    assert sorted(degrees_of(certificate.worst[0]).tolist()) == [1, 1, 2, 2]


@pytest.mark.parametrize("min_degree", [1, 2, 3])
def test_moves_endpoints_and_neighbours_of_those_above_the_clamp(min_degree: int) -> None:
    for graph, edge, moved in moved_rows_by_edge(
        ClampedGcn(min_degree=min_degree).operator, num_nodes=5
    ):
        expected = set(edge)
        for end in edge:
            row = graph.neighbors[graph.indptr[end] : graph.indptr[end + 1]]
            if len(row) > min_degree:
                expected |= set(row.tolist())
        assert moved == expected


@pytest.mark.parametrize("min_degree", [1, 2, 3, 4, 7])
def test_larger_degrees_than_those_checked_move_no_more(min_degree: int) -> None:
    wide = largest_joint_move(
        counted=lambda degree: max(degree, min_degree),
        neighbor_degree=min_degree,
        degrees=range(1, 8 * min_degree + 80),
    )
    assert wide == ClampedGcn(min_degree=min_degree).edge_sensitivity()


def test_equals_gcn_where_no_degree_is_low() -> None:
    clique = Graph.from_edges(5, [(a, b) for a in range(5) for b in range(a)])
    clamped, plain = ClampedGcn(min_degree=4), GcnAggregation(min_degree=4)
    np.testing.assert_allclose(clamped.operator(clique), plain.operator(clique))


def test_refuses_a_clamp_below_one() -> None:
    with pytest.raises(InputError, match="min_degree"):
        ClampedGcn(min_degree=0)
