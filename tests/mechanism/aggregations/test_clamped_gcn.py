"""Claim S-GCN-CLAMP on the grid: the bound covers rounding, of other nodes' rows too."""

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


def move(aggregation: GridGcn, graph: Graph, messages: NDArray[np.int8]) -> float:
    rows = [
        aggregation.aggregate(each, messages, None).astype(float)
        for each in (graph, toggle_edge(graph, (0, 1)))
    ]
    return float(np.linalg.norm(rows[0] - rows[1]))


def test_it_is_the_clamped_gcn_without_the_own_message_up_to_scale_and_rounding() -> None:
    graph = Graph.from_edges(7, [(0, k) for k in range(1, 7)] + [(1, 2), (3, 4)])
    messages = np.random.default_rng(0).integers(-30, 31, size=(7, 2)).astype(np.int8)
    real = ClampedGcn(min_degree=2)
    own = real.self_weight(np.diff(graph.indptr))[:, None] * (messages / STEPS)
    scale = STEPS * WHOLE**2 / divisor_for(min_degree=2, width=2)
    # The largest product of two weights is 1/3 in the reference and 1 on the grid.
    expected = 3 * scale * (real.aggregate(graph, messages / STEPS) - own)
    aggregated = GridGcn(min_degree=2).aggregate(graph, messages, None)
    assert np.abs(aggregated - expected).max() <= 0.5 + 0.05  # the table of weights has 15 bits


@pytest.mark.parametrize("min_degree", [2, 3, 5, 10, 20, 40])
def test_two_joined_stars_come_near_the_bound(
    min_degree: int, double_star: Callable[[int], Graph]
) -> None:
    graph = double_star(min_degree)
    messages = np.full((graph.num_nodes, 1), STEPS, dtype=np.int8)
    messages[1] = messages[2 + min_degree :] = -STEPS
    attained = move(GridGcn(min_degree=min_degree), graph, messages)
    assert 0.93 * LIMIT <= attained <= LIMIT


@pytest.mark.parametrize("width", [1, 7, 48])
@pytest.mark.parametrize("min_degree", [1, 5, 40])
def test_the_divisor_is_large_enough_and_hardly_larger(min_degree: int, width: int) -> None:
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
    width, min_degree = 300, 2  # few distinct counted degrees, so that all pairs can be tried
    divisor = divisor_for(min_degree=min_degree, width=width)
    degrees = range(1, max_counted(width) + 3)
    most = max(
        bound_by_hand(p, q, divisor=divisor, min_degree=min_degree, width=width)
        for p in degrees
        for q in degrees
    )
    bound = move_squared(divisor, min_degree=min_degree, width=width)
    assert most == pytest.approx(bound, rel=1e-11)
    assert most <= bound


def test_the_bound_covers_rounding_of_rows_around_a_hub() -> None:
    """A bound in real numbers, without rounding, would be wrong."""
    leaves, width = 600, 1
    graph = Graph.from_edges(leaves + 2, [(0, k) for k in range(1, leaves + 2)])
    aggregation, worst = GridGcn(min_degree=1), 0.0
    for size in range(1, STEPS + 1):
        messages = np.full((leaves + 2, width), size, dtype=np.int8)
        moved = aggregation.aggregate(graph, messages, None)[2:].astype(float)
        moved -= aggregation.aggregate(toggle_edge(graph, (0, 1)), messages, None)[2:]
        worst = max(worst, float(np.square(moved).sum()))
        assert move(aggregation, graph, messages) <= LIMIT
    table = weights_up_to(leaves + 1, min_degree=1) / WHOLE
    scale = STEPS * WHOLE**2 / divisor_for(min_degree=1, width=width)
    in_real_numbers = leaves * (scale * (table[leaves] - table[leaves + 1])) ** 2
    assert worst == leaves  # every leaf by one step
    assert worst > 100 * in_real_numbers


def test_a_hub_beyond_the_clamp_moves_no_row_of_others() -> None:
    size = max_counted(1) + 1
    graph = Graph.from_edges(size + 1, [(0, k) for k in range(1, size + 1)])
    messages = np.full((size + 1, 1), STEPS, dtype=np.int8)
    rows = [
        GridGcn(min_degree=5).aggregate(each, messages, None)
        for each in (graph, toggle_edge(graph, (0, 1)))
    ]
    assert np.flatnonzero(rows[0] != rows[1]).tolist() == [0, 1]


def test_weights_fall_and_are_largest_up_to_the_clamp() -> None:
    table = weights_up_to(1024, min_degree=5)
    assert (table[:6] == WHOLE).all()
    assert (np.diff(table) <= 0).all()
    real = np.sqrt(6 / (np.arange(6, 1025) + 1)) * WHOLE
    assert ((table[6:] <= real) & (table[6:] > real - 1)).all()


def test_parameters_without_a_bound_are_refused() -> None:
    for wrong in (0, 512):
        with pytest.raises(InputError, match="1 <= min_degree < 512"):
            GridGcn(min_degree=wrong)
    wide = np.zeros((2, 4000), dtype=np.int8)
    with pytest.raises(InputError, match="use fewer classes"):
        GridGcn(min_degree=5).refuse(wide)
