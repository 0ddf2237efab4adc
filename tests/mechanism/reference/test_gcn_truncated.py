"""Claim S-GCN-TRUNC: the paper's Algorithm 2 moves up to 144 times more than claimed."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import certified_move, certify, moved_rows_by_edge
from vesper.mechanism.reference.gcn import eta
from vesper.mechanism.reference.gcn_truncated import TruncatedGcn
from vesper.mechanism.reference.linear import degrees_of

TRUE = {2: 2.93, 3: 3.12, 5: 3.52, 10: 4.38, 20: 5.70, 40: 7.57}
TIMES_THE_CLAIM = {2: 3.32, 3: 4.97, 5: 8.89, 10: 21.4, 20: 54.6, 40: 144.0}


def move_with(aggregation: TruncatedGcn, graph: Graph, *, branch_sign: float) -> float:
    """Attained move over the edge {0, 1}: all messages 1, W = 1 and W_tr = branch_sign."""
    messages = np.ones((graph.num_nodes, 1))
    branch = branch_sign * aggregation.branch_norm * messages
    rows = [
        aggregation.aggregate_with(each, messages, branch)
        for each in (graph, toggle_edge(graph, (0, 1)))
    ]
    return float(np.linalg.norm(rows[0] - rows[1]))


@pytest.mark.parametrize(("min_degree", "expected"), TRUE.items())
def test_true_values_are_attained(
    min_degree: int, expected: float, double_star: Callable[[int], Graph]
) -> None:
    aggregation = TruncatedGcn(min_degree=min_degree)
    assert aggregation.edge_sensitivity() == pytest.approx(expected, abs=6e-3)
    move = move_with(aggregation, double_star(min_degree - 1), branch_sign=-1.0)
    assert move == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)


@pytest.mark.parametrize(("min_degree", "times"), TIMES_THE_CLAIM.items())
def test_refuted_eta_on_any_graph(min_degree: int, times: float) -> None:
    aggregation = TruncatedGcn(min_degree=min_degree)
    ratio = aggregation.edge_sensitivity() / aggregation.claimed_edge_sensitivity()
    assert ratio == pytest.approx(times, rel=3e-3)


def test_refuted_by_the_path_on_four_nodes_even_if_the_branch_is_the_identity() -> None:
    path = Graph.from_edges(4, [(2, 0), (0, 1), (1, 3)])
    aggregation = TruncatedGcn(min_degree=2)
    claimed = aggregation.claimed_edge_sensitivity()
    assert claimed == pytest.approx(0.8839, abs=1e-4)
    assert move_with(aggregation, path, branch_sign=-1.0) == pytest.approx(2.934, abs=1e-3)
    # W_tr = W = 1: the own message contributes -2/3, the two others have the opposite sign
    messages = np.array([[1.0], [-1.0], [-1.0], [1.0]])
    rows = [
        aggregation.aggregate_with(each, messages, messages)
        for each in (path, toggle_edge(path, (0, 1)))
    ]
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(1.9916, abs=1e-4)
    certificate = certify(aggregation.operator, num_nodes=4)
    assert certificate.worst is not None
    assert sorted(degrees_of(certificate.worst[0]).tolist()) == [1, 1, 2, 2]


@pytest.mark.parametrize(("min_degree", "exceeds"), [(2, False), (3, False), (5, True), (10, True)])
def test_senders_of_low_degree_alone_exceed_the_claim_from_five_on(
    min_degree: int, exceeds: bool
) -> None:
    # No node crosses min_degree: the centre goes from m + 1 leaves to m, and leaves always use
    # the branch.
    leaves = min_degree + 1
    star = Graph.from_edges(leaves + 1, [(0, 1 + k) for k in range(leaves)])
    messages = np.ones((leaves + 1, 1))
    messages[1] = -1.0  # the leaf that is removed, opposite to the centre and the others
    aggregation = TruncatedGcn(min_degree=min_degree)
    rows = [
        aggregation.aggregate_with(each, messages, messages)
        for each in (star, toggle_edge(star, (0, 1)))
    ]
    move = float(np.linalg.norm(rows[0] - rows[1]))
    m = min_degree
    scale = 1 / math.sqrt(m + 1) - 1 / math.sqrt(m + 2)
    formula = 1 / ((m + 1) * (m + 2)) + 1 / math.sqrt(2 * (m + 2)) + m / math.sqrt(2) * scale
    assert move == pytest.approx(formula, rel=1e-9)
    assert (move > eta(min_degree)) == exceeds


def test_a_branch_without_a_bound_moves_without_a_bound(
    double_star: Callable[[int], Graph],
) -> None:
    for branch_norm in (1.0, 10.0, 1000.0):
        aggregation = TruncatedGcn(min_degree=5, branch_norm=branch_norm)
        move = move_with(aggregation, double_star(4), branch_sign=-1.0)
        assert move == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)
        assert move > math.sqrt(2) * branch_norm


@pytest.mark.parametrize("min_degree", [2, 3, 5])
def test_a_smaller_bound_is_caught(min_degree: int, double_star: Callable[[int], Graph]) -> None:
    aggregation = TruncatedGcn(min_degree=min_degree)
    graph = double_star(min_degree - 1)
    difference = aggregation.operator(graph) - aggregation.operator(toggle_edge(graph, (0, 1)))
    bound = aggregation.edge_sensitivity()
    assert 0.99 * bound < float(certified_move(difference)) <= bound


@pytest.mark.parametrize("min_degree", [1, 2, 3])
def test_moves_aggregated_endpoints_and_aggregated_neighbours(min_degree: int) -> None:
    for graph, edge, moved in moved_rows_by_edge(
        TruncatedGcn(min_degree=min_degree).operator, num_nodes=5
    ):
        near = set(edge)
        for end in edge:
            near |= set(graph.neighbors[graph.indptr[end] : graph.indptr[end + 1]].tolist())
        degrees = degrees_of(graph)
        assert moved == {node for node in near if degrees[node] >= min_degree}


def test_refuses_parameters_and_rows_without_a_bound() -> None:
    with pytest.raises(InputError, match="min_degree"):
        TruncatedGcn(min_degree=0)
    for branch_norm in (0.5, math.inf, math.nan):
        with pytest.raises(InputError, match="branch_norm"):
            TruncatedGcn(min_degree=2, branch_norm=branch_norm)
    pair, rows = Graph.from_edges(2, [(0, 1)]), np.ones((2, 1))
    with pytest.raises(InputError, match="W_tr"):
        TruncatedGcn(min_degree=2).aggregate_with(pair, rows, 2 * rows)
    with pytest.raises(InputError, match="branch"):
        TruncatedGcn(min_degree=2).aggregate_with(pair, rows, np.ones((2, 2)))
