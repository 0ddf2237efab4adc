"""Graphs built from pairs, as users write them."""

from typing import Any

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.graph import Graph


def test_repeats_and_loops_are_dropped() -> None:
    graph = Graph.from_edges(4, [(2, 0), (0, 2), (1, 1), (0, 1)])
    assert graph.num_edges == 2
    assert graph.indptr.tolist() == [0, 2, 3, 4, 4]
    assert graph.neighbors.tolist() == [1, 2, 0, 0]
    assert Graph.from_edges(2, []).num_edges == 0
    assert Graph.from_edges(3, np.array([[0, 2]])).num_edges == 1


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1, 2)], r"pairs of integer node numbers such as \(0, 1\), got \(0, 1, 2\)"),
        ([(0, 1), (1,)], "expected pairs of integer node numbers"),
        ([(0.7, 1.2)], r"got \(0.7, 1.2\)"),
        (["ab"], "got 'ab'"),
        (np.zeros((2, 5), int), "expected pairs of integer node numbers"),
        ([(0, -1)], "expected node numbers from 0 to 2, got -1"),
        ([(0, 3)], "expected node numbers from 0 to 2, got 3"),
    ],
)
def test_malformed_pairs_are_refused(edges: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_edges(3, edges)


def test_a_negative_number_of_nodes_is_refused() -> None:
    with pytest.raises(InputError, match="num_nodes: expected 0 or more, got -1"):
        Graph.from_edges(-1, [])


def test_what_is_shown_of_a_graph_never_depends_on_edges() -> None:
    empty, full = Graph.from_edges(4, []), Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    assert repr(empty) == repr(full) == "Graph(num_nodes=4)"
    assert empty._repr_html_() == full._repr_html_()
    assert ">4<" in empty._repr_html_()
