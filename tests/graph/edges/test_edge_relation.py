import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import (
    all_graphs,
    all_pairs,
    differing_edge,
    edges_of,
    toggle_edge,
)
from vesper.graph.graph import Graph

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20)


@given(PAIRS, st.integers(0, 6), st.integers(0, 6))
def test_toggling_changes_exactly_that_edge(pairs: list[tuple[int, int]], a: int, b: int) -> None:
    graph = Graph.from_edges(7, pairs)
    if a == b:
        with pytest.raises(InputError):
            toggle_edge(graph, (a, b))
        return
    other = toggle_edge(graph, (a, b))
    assert set(edges_of(graph)) ^ set(edges_of(other)) == {(min(a, b), max(a, b))}
    assert differing_edge(graph, other) == (min(a, b), max(a, b))
    naive = Graph.from_edges(7, edges_of(other))
    assert other.indptr.tolist() == naive.indptr.tolist()
    assert other.neighbors.tolist() == naive.neighbors.tolist()
    assert list(edges_of(toggle_edge(other, (b, a)))) == list(edges_of(graph))


def test_equal_graphs_and_graphs_two_edges_apart_do_not_differ_by_one_edge() -> None:
    triangle = Graph.from_edges(3, [(0, 1), (1, 2), (0, 2)])
    path = Graph.from_edges(3, [(0, 1)])
    assert differing_edge(triangle, triangle) is None
    assert differing_edge(triangle, path) is None
    assert differing_edge(triangle, Graph.from_edges(4, [(0, 1), (1, 2)])) is None


def test_moving_an_edge_is_two_changes() -> None:
    one, other = Graph.from_edges(3, [(0, 1)]), Graph.from_edges(3, [(1, 2)])
    assert differing_edge(one, other) is None


def test_all_graphs_and_pairs_are_counted() -> None:
    assert sum(1 for _ in all_graphs(4)) == 2**6
    pairs = list(all_pairs(4))
    assert len(pairs) == 6 * 2**5
    assert all(differing_edge(first, second) == edge for first, second, edge in pairs)
