"""Claim S-GCN-CLAMP on the grid: rounding is counted, for rows of others too."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.clamped_gcn import (
    FINE_STEPS,
    WHOLE,
    GridGcn,
    divisor_for,
    max_counted,
    move_squared,
    weights_up_to,
)
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.reference.gcn_clamped import ClampedGcn

LIMIT = math.sqrt(2) * FINE_STEPS


def move(aggregation: GridGcn, graph: Graph, said: NDArray[np.int8]) -> float:
    rows = [
        aggregation.aggregate(each, said, None).astype(float)
        for each in (graph, toggle_edge(graph, (0, 1)))
    ]
    return float(np.linalg.norm(rows[0] - rows[1]))


def test_it_is_the_clamped_gcn_without_the_own_message_but_for_scale_and_rounding() -> None:
    graph = Graph.from_edges(7, [(0, k) for k in range(1, 7)] + [(1, 2), (3, 4)])
    said = np.random.default_rng(0).integers(-30, 31, size=(7, 2)).astype(np.int8)
    real = ClampedGcn(min_degree=2)
    own = real.self_weight(np.diff(graph.indptr))[:, None] * (said / STEPS)
    scale = STEPS * WHOLE**2 / divisor_for(min_degree=2, width=2)
    expected = 3 * scale * (real.aggregate(graph, said / STEPS) - own)  # w^2 = 1/3 is their unit
    found = GridGcn(min_degree=2).aggregate(graph, said, None)
    assert np.abs(found - expected).max() <= 0.5 + 0.05  # the table of weights has 15 bits


@pytest.mark.parametrize("min_degree", [2, 3, 5, 10, 20, 40])
def test_two_joined_stars_come_near_the_bound(
    min_degree: int, double_star: Callable[[int], Graph]
) -> None:
    graph = double_star(min_degree)
    said = np.full((graph.num_nodes, 1), STEPS, dtype=np.int8)
    said[1] = said[2 + min_degree :] = -STEPS
    attained = move(GridGcn(min_degree=min_degree), graph, said)
    assert 0.93 * LIMIT <= attained <= LIMIT


@pytest.mark.parametrize("width", [1, 7, 48])
@pytest.mark.parametrize("min_degree", [1, 5, 40])
def test_the_divisor_is_enough_and_hardly_more(min_degree: int, width: int) -> None:
    divisor = divisor_for(min_degree=min_degree, width=width)
    assert move_squared(divisor, min_degree=min_degree, width=width) <= LIMIT**2
    less = math.floor(0.99 * divisor)
    assert move_squared(less, min_degree=min_degree, width=width) > LIMIT**2


def bound_by_hand(p: int, q: int, *, divisor: int, min_degree: int, width: int) -> float:
    """The bound of the proof, term by term, for endpoints of two degrees."""
    table = weights_up_to(max_counted(width), min_degree=min_degree)

    def weight(degree: int) -> float:
        return float(table[min(degree, len(table) - 1)]) / WHOLE

    scale, total = STEPS * WHOLE**2 / divisor, 0.0
    for d, e in ((p, q), (q, p)):
        drop = weight(d - 1) - weight(d)
        row = scale * (weight(d) * weight(e) + (d - 1) * drop) + math.sqrt(width)
        other = scale * drop + math.sqrt(width) if drop else 0.0
        total += row**2 + 2 * (d - 1) * other**2
    return total


def test_the_largest_bound_is_that_of_the_proof_over_all_degrees() -> None:
    width, min_degree = 300, 2  # few degrees count apart, so that all pairs can be tried
    divisor = divisor_for(min_degree=min_degree, width=width)
    degrees = range(1, max_counted(width) + 3)
    most = max(
        bound_by_hand(p, q, divisor=divisor, min_degree=min_degree, width=width)
        for p in degrees
        for q in degrees
    )
    found = move_squared(divisor, min_degree=min_degree, width=width)
    assert most == pytest.approx(found, rel=1e-11)
    assert most <= found


def test_rows_around_a_hub_are_rounded_the_other_way_and_it_is_counted() -> None:
    """Without counting it, the bound would be a formula in real numbers, and wrong."""
    leaves, width = 600, 1
    graph = Graph.from_edges(leaves + 2, [(0, k) for k in range(1, leaves + 2)])
    aggregation, worst = GridGcn(min_degree=1), 0.0
    for size in range(1, STEPS + 1):
        said = np.full((leaves + 2, width), size, dtype=np.int8)
        moved = aggregation.aggregate(graph, said, None)[2:].astype(float)
        moved -= aggregation.aggregate(toggle_edge(graph, (0, 1)), said, None)[2:]
        worst = max(worst, float(np.square(moved).sum()))
        assert move(aggregation, graph, said) <= LIMIT
    table = weights_up_to(leaves + 1, min_degree=1) / WHOLE
    scale = STEPS * WHOLE**2 / divisor_for(min_degree=1, width=width)
    in_real_numbers = leaves * (scale * (table[leaves] - table[leaves + 1])) ** 2
    assert worst == leaves  # every leaf by one step
    assert worst > 100 * in_real_numbers


def test_a_hub_beyond_the_clamp_moves_no_row_of_others() -> None:
    size = max_counted(1) + 1
    graph = Graph.from_edges(size + 1, [(0, k) for k in range(1, size + 1)])
    said = np.full((size + 1, 1), STEPS, dtype=np.int8)
    rows = [
        GridGcn(min_degree=5).aggregate(each, said, None)
        for each in (graph, toggle_edge(graph, (0, 1)))
    ]
    assert np.flatnonzero(rows[0] != rows[1]).tolist() == [0, 1]


def test_weights_fall_and_are_whole_up_to_the_clamp() -> None:
    table = weights_up_to(1024, min_degree=5)
    assert (table[:6] == WHOLE).all()
    assert (np.diff(table) <= 0).all()
    real = np.sqrt(6 / (np.arange(6, 1025) + 1)) * WHOLE
    assert ((table[6:] <= real) & (table[6:] > real - 1)).all()


def test_what_cannot_be_bounded_is_refused() -> None:
    for wrong in (0, 512):
        with pytest.raises(InputError, match="1 <= min_degree < 512"):
            GridGcn(min_degree=wrong)
    wide = np.zeros((2, 4000), dtype=np.int8)
    with pytest.raises(InputError, match="use fewer classes"):
        GridGcn(min_degree=5).refuse(wide)
