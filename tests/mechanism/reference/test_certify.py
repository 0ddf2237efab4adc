"""The brute-force search checks the right pairs, bounds all messages, and can fail."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import all_pairs, differing_edge, edges_of, toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import (
    certified_move,
    certify,
    exhaustive_move,
    moved_rows,
    moved_rows_by_edge,
)
from vesper.mechanism.reference.gcn_clamped import ClampedGcn
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.linear import degrees_of

Floats = NDArray[np.float64]


@pytest.mark.parametrize(
    ("num_nodes", "pairs"), [(1, 0), (2, 1), (3, 12), (4, 6 * 32), (5, 10 * 512)]
)
def test_checks_every_pair_that_differs_by_one_edge(num_nodes: int, pairs: int) -> None:
    assert certify(GinAggregation().operator, num_nodes=num_nodes).pairs == pairs


def test_equals_a_plain_loop_over_all_pairs() -> None:
    operator = ClampedGcn(min_degree=1).operator
    moves, rows = [], []
    for first, second, _ in all_pairs(4):
        difference = operator(first) - operator(second)
        moves.append(float(certified_move(difference)))
        rows.append(int(moved_rows(difference).sum()))
    certificate = certify(operator, num_nodes=4)
    assert (certificate.move, certificate.rows, certificate.pairs) == (
        max(moves),
        max(rows),
        len(moves),
    )


def test_moved_rows_by_edge_lists_every_pair() -> None:
    operator = ClampedGcn(min_degree=1).operator
    listed = {
        (tuple(edges_of(graph)), edge): moved
        for graph, edge, moved in moved_rows_by_edge(operator, num_nodes=4)
    }
    expected = {
        (tuple(edges_of(first)), edge): set(
            np.flatnonzero(moved_rows(operator(first) - operator(second))).tolist()
        )
        for first, second, edge in all_pairs(4)
    }
    assert listed == expected


def test_returns_the_pair_of_the_largest_move() -> None:
    operator = ClampedGcn(min_degree=1).operator
    certificate = certify(operator, num_nodes=4)
    assert certificate.worst is not None
    graph, edge = certificate.worst
    other = toggle_edge(graph, edge)
    assert differing_edge(graph, other) == edge
    assert float(certified_move(operator(graph) - operator(other))) == certificate.move


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 7))
def test_no_messages_move_more_than_is_certified(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    difference = rng.standard_normal((rows, columns))
    bound = float(certified_move(difference))
    messages = rng.standard_normal((50, columns, 3))
    messages /= np.linalg.norm(messages, axis=2, keepdims=True)
    signs = rng.choice([-1.0, 1.0], size=(50, columns, 1))
    for each in (*messages, *signs):
        assert np.linalg.norm(difference @ each) <= bound + 1e-12


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_exact_for_one_row_and_for_one_message(seed: int, size: int) -> None:
    row = np.random.default_rng(seed).standard_normal((1, size))
    assert float(certified_move(row)) == pytest.approx(float(np.abs(row).sum()))
    assert float(certified_move(row.T)) == pytest.approx(float(np.linalg.norm(row)))


def test_an_aggregation_that_reads_the_number_of_edges_moves_every_row() -> None:
    def operator(graph: Graph) -> Floats:
        return GinAggregation().operator(graph) / (1 + graph.num_edges)

    assert certify(operator, num_nodes=4).rows == 4
    assert certify(GinAggregation().operator, num_nodes=4).rows == 2


def test_graphs_that_are_not_admitted_are_skipped() -> None:
    def operator(graph: Graph) -> Floats:
        assert degrees_of(graph).min() >= 2
        return GinAggregation().operator(graph)

    certificate = certify(operator, num_nodes=4, admits=lambda graph: degrees_of(graph).min() >= 2)
    # Pairs: the three 4-cycles with one of two diagonals, and the complete graph minus one edge.
    assert certificate.pairs == 3 * 2 + 6
    assert certificate.move == pytest.approx(math.sqrt(2))
    none = certify(operator, num_nodes=3, admits=lambda graph: degrees_of(graph).min() >= 2)
    assert (none.move, none.pairs, none.worst) == (0.0, 0, None)


def test_exhaustive_move_of_a_nonlinear_function() -> None:
    # The number of edges, squared, at node 0: the last edge of four nodes moves it by 36 - 25.
    def squared(graph: Graph) -> Floats:
        out = np.zeros((2, 4, 1))  # two choices of messages, the second all zero
        out[0, 0, 0] = graph.num_edges**2
        return out

    certificate = exhaustive_move(squared, num_nodes=4)
    assert (certificate.move, certificate.rows, certificate.pairs) == (11.0, 1, 192)


def test_reports_progress() -> None:
    reports: list[tuple[str, int, int]] = []

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        reports.append((task, done, total))

    certify(GinAggregation().operator, num_nodes=3, progress=progress)
    assert reports == [("graphs", k, 8) for k in range(1, 9)]


@pytest.mark.parametrize("num_nodes", [0, 7])
def test_refuses_sizes_with_too_many_graphs(num_nodes: int) -> None:
    with pytest.raises(InputError, match="num_nodes"):
        certify(GinAggregation().operator, num_nodes=num_nodes)
