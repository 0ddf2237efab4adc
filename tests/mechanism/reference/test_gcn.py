"""Claim S-GCN: the paper's eta(m) is a bound, its proof is wrong, the exact value is smaller."""

from collections.abc import Callable

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import Edge, toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import (
    certified_move,
    certify,
    moved_rows,
    moved_rows_by_edge,
)
from vesper.mechanism.reference.gcn import GcnAggregation, eta, largest_joint_move
from vesper.mechanism.reference.linear import degrees_of

TRUE = {0: 1.4142, 1: 0.8469, 2: 0.6044, 3: 0.4700, 5: 0.3255, 10: 0.1841, 20: 0.09855, 40: 0.05108}
ETA = {2: 0.8839, 3: 0.6285, 5: 0.3960, 10: 0.2051, 20: 0.10430, 40: 0.05259}


def neighbors(graph: Graph, node: int) -> set[int]:
    return set(graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]].tolist())


def worst_graph(min_degree: int) -> tuple[Graph, Edge]:
    """Both endpoints of degree m + 1, each of their m other neighbours of degree exactly m.

    Each of these neighbours is joined to m - 1 nodes of its own clique.
    """
    edges: list[Edge] = [(0, 1)]
    size = 2
    for endpoint in (0, 1):
        for _ in range(min_degree):
            neighbor, clique = size, range(size + 1, size + 1 + min_degree + 1)
            edges.append((endpoint, neighbor))
            edges += [(neighbor, node) for node in clique[: min_degree - 1]]
            edges += [(a, b) for a in clique for b in clique if a < b]
            size = clique.stop
    return Graph.from_edges(size, edges), (0, 1)


@pytest.mark.parametrize(("min_degree", "expected"), TRUE.items())
def test_true_values(min_degree: int, expected: float) -> None:
    value = GcnAggregation(min_degree=min_degree).edge_sensitivity()
    assert value == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(("min_degree", "expected"), ETA.items())
def test_the_paper_claims_more_than_is_true(min_degree: int, expected: float) -> None:
    aggregation = GcnAggregation(min_degree=min_degree)
    claimed = aggregation.claimed_edge_sensitivity()
    assert claimed == pytest.approx(expected, rel=2e-4)
    assert 1.02 < claimed / aggregation.edge_sensitivity() < 1.47


@pytest.mark.parametrize("min_degree", [1, 2, 3, 5])
def test_tight(min_degree: int) -> None:
    aggregation = GcnAggregation(min_degree=min_degree)
    graph, edge = worst_graph(min_degree)
    other = toggle_edge(graph, edge)
    assert degrees_of(graph).min() >= min_degree
    assert degrees_of(other).min() == min_degree
    messages = np.ones((graph.num_nodes, 1))
    messages[[1, *(neighbors(graph, 1) - {0})]] = -1.0
    moved = aggregation.aggregate(graph, messages) - aggregation.aggregate(other, messages)
    assert np.linalg.norm(moved) == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)


@pytest.mark.parametrize("min_degree", [1, 2, 3])
def test_a_smaller_bound_is_caught(min_degree: int) -> None:
    aggregation = GcnAggregation(min_degree=min_degree)
    graph, edge = worst_graph(min_degree)
    operators = [aggregation.operator(each) for each in (graph, toggle_edge(graph, edge))]
    move = float(certified_move(operators[0] - operators[1]))
    assert 0.99 * aggregation.edge_sensitivity() < move <= aggregation.edge_sensitivity()


def test_moves_the_endpoints_and_all_their_neighbours() -> None:
    for n in range(2, 6):
        for graph, (a, b), moved in moved_rows_by_edge(
            GcnAggregation(min_degree=0).operator, num_nodes=n
        ):
            assert moved == neighbors(graph, a) | neighbors(graph, b)


def test_refuted_only_two_embeddings_change(double_star: Callable[[int], Graph]) -> None:
    # The proof of Proposition 2 claims this. With degrees up to D = 20, forty rows move.
    graph = double_star(19)
    operator = GcnAggregation(min_degree=0).operator
    difference = operator(graph) - operator(toggle_edge(graph, (0, 1)))
    assert int(moved_rows(difference).sum()) == 2 * 20


@pytest.mark.nightly
def test_two_triangles_attain_the_bound_on_six_nodes() -> None:
    aggregation = GcnAggregation(min_degree=2)
    certificate = certify(
        aggregation.operator, num_nodes=6, admits=lambda graph: bool(degrees_of(graph).min() >= 2)
    )
    assert (certificate.pairs, certificate.rows) == (70_170, 6)
    assert certificate.move == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)


@pytest.mark.parametrize("min_degree", [0, 1, 2, 3, 4, 7])
def test_larger_degrees_than_those_checked_move_no_more(min_degree: int) -> None:
    wide = largest_joint_move(
        counted=lambda degree: degree,
        neighbor_degree=max(min_degree, 1),
        degrees=range(min_degree + 1, 8 * min_degree + 80),
    )
    assert wide == GcnAggregation(min_degree=min_degree).edge_sensitivity()


def test_without_a_promise_it_is_no_better_than_the_sum() -> None:
    certificate = certify(GcnAggregation(min_degree=0).operator, num_nodes=2)
    assert certificate.move == pytest.approx(2**0.5)


def test_refuses_a_graph_that_breaks_the_promise() -> None:
    path = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    with pytest.raises(InputError, match=r"fewer at 2 nodes \(first 2: 0, 3\); use ClampedGcn"):
        GcnAggregation(min_degree=2).operator(path)
    GcnAggregation(min_degree=1).operator(path)


def test_refuses_invalid_minimum_degrees() -> None:
    with pytest.raises(InputError, match="min_degree"):
        GcnAggregation(min_degree=-1)
    for min_degree in (0, 1):
        with pytest.raises(InputError, match="Proposition 2"):
            eta(min_degree)
