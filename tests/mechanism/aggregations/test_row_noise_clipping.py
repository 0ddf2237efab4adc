"""Clipping on the grid: integers, never longer than row_norm, never much further apart."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import all_graphs, edges_of
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.aggregations.row_noise import clip_on_grid, refuse_high_degrees, rounding_of
from vesper.mechanism.reference.linear import degrees_of
from vesper.mechanism.reference.node_relation import isolate
from vesper.privacy.accounting.participation import node_rows

rows = st.lists(st.integers(-5000, 5000), min_size=3, max_size=3)


def clipped(values: list[int], row_norm: float) -> np.ndarray:
    block = np.array([values], dtype=np.int32)
    clip_on_grid(block, row_norm=row_norm)
    shortened: np.ndarray = block[0].astype(np.int64)
    return shortened


@given(values=rows, row_norm=st.floats(1, 30))
def test_long_rows_are_shortened_and_short_ones_unchanged(
    values: list[int], row_norm: float
) -> None:
    result, length = clipped(values, row_norm), math.hypot(*values)
    assert math.hypot(*result.tolist()) <= row_norm * STEPS
    if length <= row_norm * STEPS * (1 - 1e-9):
        assert result.tolist() == values
    else:  # rounded towards zero, by less than a step per coordinate
        exact = np.array(values) * (row_norm * STEPS / length)
        assert (np.abs(exact - result) < 1.001).all()
        assert (np.abs(result) <= np.abs(exact) + 1e-6).all()


@given(values=rows, move=st.lists(st.integers(-37, 36), min_size=3, max_size=3))
def test_two_rows_move_apart_by_at_most_the_rounding(values: list[int], move: list[int]) -> None:
    other = [a + b for a, b in zip(values, move, strict=True)]  # at most 1 unit away
    for row_norm in (1.0, 2.5, 20.0):
        apart = np.linalg.norm(clipped(values, row_norm) - clipped(other, row_norm)) / STEPS
        assert apart <= math.hypot(*move) / STEPS + rounding_of(3)


@pytest.mark.parametrize(("max_degree", "row_norm"), [(2, 1.0), (3, math.sqrt(3))])
def test_node_sensitivity_on_all_graphs_of_four_nodes(max_degree: int, row_norm: float) -> None:
    """Claim N-NODE on the grid: the ledger charges for at least the largest move."""
    directions = [(STEPS, 0), (-STEPS, 0), (38, -51), (45, 45)]
    worst = 0.0
    for choice in product(range(4), repeat=4):
        messages = np.array([directions[k] for k in choice], dtype=np.int8)  # (4, 2)
        for graph in all_graphs(4):
            if degrees_of(graph).max() > max_degree:
                continue
            before = NeighborSum().aggregate(graph, messages, None)
            after = NeighborSum().aggregate(isolate(graph, 0), messages, None)
            for sums in (before, after):
                clip_on_grid(sums, row_norm=row_norm)
            worst = max(worst, float(np.linalg.norm(before - after)) / STEPS)
    bound = math.sqrt(node_rows(max_degree=max_degree, row_norm=row_norm))
    assert worst <= bound * (1 + rounding_of(2))
    assert worst >= 0.9 * bound  # and not for much more


def test_a_graph_above_max_degree_is_refused() -> None:
    star = Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)])
    refuse_high_degrees(star, max_degree=3)
    with pytest.raises(InputError, match="at most 2 neighbours per node, got more at 1 nodes"):
        refuse_high_degrees(star, max_degree=2)
    with pytest.raises(InputError, match="max_degree"):
        refuse_high_degrees(star, max_degree=1 << 30)
    assert len(list(edges_of(star))) == 3
