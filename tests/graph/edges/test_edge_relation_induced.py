"""Induced subgraphs, compared with a list of the graph's edges."""

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import edges_of, induced_subgraph
from vesper.graph.graph import Graph


def test_it_has_the_edges_with_both_ends_inside() -> None:
    rng = np.random.default_rng(0)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 12, size=(40, 2))]
    graph = Graph.from_edges(12, pairs)
    nodes = np.array([7, 2, 11, 0, 5])
    part = induced_subgraph(graph, nodes)
    expected = {
        tuple(sorted((i, j)))
        for i, a in enumerate(nodes)
        for j, b in enumerate(nodes)
        if (min(a, b), max(a, b)) in set(edges_of(graph))
    }
    assert set(edges_of(part)) == expected
    assert part.num_nodes == 5
    for node in range(5):
        row = part.neighbors[part.indptr[node] : part.indptr[node + 1]]
        assert (np.diff(row) > 0).all()


def test_no_nodes_and_no_edges() -> None:
    graph = Graph.from_edges(3, [(0, 1)])
    assert induced_subgraph(graph, np.zeros(0, dtype=np.int64)).num_nodes == 0
    assert induced_subgraph(graph, np.array([2, 0])).num_edges == 0


def test_repeats_are_refused() -> None:
    with pytest.raises(InputError, match="distinct"):
        induced_subgraph(Graph.from_edges(3, [(0, 1)]), np.array([1, 1]))
