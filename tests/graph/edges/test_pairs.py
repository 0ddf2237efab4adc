"""Pairs with and without an edge, compared with a list of all pairs."""

from itertools import combinations

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.pairs import are_edges, degrees_of, draw_edges, draw_non_edges
from vesper.graph.graph import Graph

EDGES = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (1, 5)]
GRAPH = Graph.from_edges(7, EDGES)


def test_are_edges_is_right_for_every_pair_in_either_order() -> None:
    pairs = np.array(list(combinations(range(7), 2)))
    expected = [tuple(pair) in EDGES for pair in pairs.tolist()]
    assert are_edges(GRAPH, pairs).tolist() == expected
    assert are_edges(GRAPH, pairs[:, ::-1]).tolist() == expected


def test_a_graph_without_edges() -> None:
    empty = Graph.from_edges(3, [])
    assert are_edges(empty, np.array([[0, 1]])).tolist() == [False]
    assert len(draw_edges(empty, 5, rng=np.random.default_rng(0))) == 0


def test_degrees() -> None:
    assert degrees_of(GRAPH).tolist() == [2, 3, 2, 1, 2, 2, 0]


def test_drawn_edges_are_distinct_edges() -> None:
    drawn = draw_edges(GRAPH, 4, rng=np.random.default_rng(1)).tolist()
    assert len({tuple(pair) for pair in drawn}) == 4
    assert all(tuple(pair) in EDGES for pair in drawn)
    assert len(draw_edges(GRAPH, 100, rng=np.random.default_rng(1))) == len(EDGES)


def test_drawn_non_edges_are_distinct_and_cover_all_non_edges() -> None:
    others = {pair for pair in combinations(range(7), 2) if pair not in EDGES}
    drawn = draw_non_edges(GRAPH, len(others), rng=np.random.default_rng(2)).tolist()
    assert {tuple(pair) for pair in drawn} == others


def test_too_few_non_edges_are_refused() -> None:
    full = Graph.from_edges(4, combinations(range(4), 2))
    with pytest.raises(InputError, match="pairs of nodes without an edge, found 0"):
        draw_non_edges(full, 1, rng=np.random.default_rng(0))
