"""Claim S-MAX: the cost of a maximum depends on its floor."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import Edge, toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import exhaustive_move
from vesper.mechanism.reference.coordinate_max import CoordinateMax, Floor

Floats = NDArray[np.float64]
PAIR = Graph.from_edges(2, [(0, 1)])


def choices(num_nodes: int, rows: list[tuple[float, ...]]) -> Floats:
    """Every way to give each node one of the rows, (choices, num_nodes, width)."""
    return np.array(list(product(rows, repeat=num_nodes)))


def on_all(aggregation: CoordinateMax, messages: Floats) -> Callable[[Graph], Floats]:
    return lambda graph: aggregation.aggregate(graph, messages)


SIGNS: list[tuple[float, ...]] = [(-1.0,), (0.0,), (1.0,)]
PLANE: list[tuple[float, ...]] = [
    *((math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)) for k in range(8)),
    (0.0, 0.0),
]


@pytest.mark.parametrize("floor", [Floor.ZERO, Floor.OWN_MESSAGE])
def test_holds_for_all_signs_up_to_five_nodes(floor: Floor) -> None:
    aggregation = CoordinateMax(floor)
    for n in range(2, 6):
        certificate = exhaustive_move(on_all(aggregation, choices(n, SIGNS)), num_nodes=n)
        assert certificate.move <= aggregation.edge_sensitivity()
        assert certificate.rows <= 2


@pytest.mark.nightly
@pytest.mark.parametrize("floor", [Floor.ZERO, Floor.OWN_MESSAGE])
def test_holds_for_both_signs_on_all_graphs_with_six_nodes(floor: Floor) -> None:
    aggregation = CoordinateMax(floor)
    certificate = exhaustive_move(on_all(aggregation, choices(6, [(-1.0,), (1.0,)])), num_nodes=6)
    assert certificate.move <= aggregation.edge_sensitivity()
    assert certificate.rows <= 2


@pytest.mark.parametrize("floor", [Floor.ZERO, Floor.OWN_MESSAGE])
def test_holds_for_eight_directions_in_the_plane_up_to_four_nodes(floor: Floor) -> None:
    aggregation = CoordinateMax(floor)
    for n in range(2, 5):
        certificate = exhaustive_move(on_all(aggregation, choices(n, PLANE)), num_nodes=n)
        assert certificate.move <= aggregation.edge_sensitivity() + 1e-12
        assert certificate.move > 0.99 * aggregation.edge_sensitivity()


def test_holds_with_own_rows_on_three_nodes() -> None:
    aggregation = CoordinateMax(Floor.OWN_ROW)
    rows = choices(6, SIGNS)  # messages of three nodes, then their own rows
    certificate = exhaustive_move(
        lambda g: aggregation.aggregate(g, rows[:, :3], rows[:, 3:]), num_nodes=3
    )
    assert certificate.move <= aggregation.edge_sensitivity()
    assert certificate.move > 0.99 * aggregation.edge_sensitivity()


def move(aggregation: CoordinateMax, messages: Floats, own: Floats | None = None) -> float:
    rows = [
        aggregation.aggregate(each, messages, own) for each in (PAIR, toggle_edge(PAIR, (0, 1)))
    ]
    return float(np.linalg.norm(rows[0] - rows[1]))


def test_tight_for_each_floor() -> None:
    assert move(CoordinateMax(), np.ones((2, 1))) == pytest.approx(math.sqrt(2))
    opposite = np.array([[1.0], [-1.0]])
    assert move(CoordinateMax(Floor.OWN_MESSAGE), opposite) == 2.0
    ones = np.ones((2, 1))
    assert move(CoordinateMax(Floor.OWN_ROW), ones, -ones) == pytest.approx(2 * math.sqrt(2))


@given(st.sampled_from(Floor), st.integers(0, 2**32 - 1))
def test_holds_on_random_graphs_and_moves_endpoints_only(floor: Floor, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    pairs = rng.integers(0, n, size=(int(rng.integers(0, 60)), 2)).tolist()
    graph = Graph.from_edges(n, [(a, b) for a, b in pairs])
    edge: Edge = (0, 1)
    rows = rng.standard_normal((2, n, 4))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    aggregation = CoordinateMax(floor)
    own = rows[1] if floor is Floor.OWN_ROW else None
    moved = aggregation.aggregate(graph, rows[0], own) - aggregation.aggregate(
        toggle_edge(graph, edge), rows[0], own
    )
    assert np.linalg.norm(moved) <= aggregation.edge_sensitivity()
    assert set(np.flatnonzero(np.abs(moved).sum(axis=1)).tolist()) <= set(edge)


def test_equals_a_plain_loop() -> None:
    graph = Graph.from_edges(5, [(0, 1), (0, 2), (1, 2), (3, 0)])
    messages = np.random.default_rng(1).uniform(-0.5, 0.5, size=(5, 2))
    out = CoordinateMax(Floor.OWN_MESSAGE).aggregate(graph, messages)
    for v in range(5):
        near = [v, *graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]]]
        assert out[v].tolist() == messages[near].max(axis=0).tolist()


def test_refuses_long_rows_and_misplaced_own_rows() -> None:
    ones = np.ones((2, 1))
    with pytest.raises(InputError, match="norm at most 1"):
        CoordinateMax().aggregate(PAIR, 2 * ones)
    with pytest.raises(InputError, match="norm at most 1"):
        CoordinateMax(Floor.OWN_ROW).aggregate(PAIR, ones, 2 * ones)
    with pytest.raises(InputError, match="if and only if the floor is OWN_ROW"):
        CoordinateMax().aggregate(PAIR, ones, ones)
    with pytest.raises(InputError, match="if and only if the floor is OWN_ROW"):
        CoordinateMax(Floor.OWN_ROW).aggregate(PAIR, ones)
