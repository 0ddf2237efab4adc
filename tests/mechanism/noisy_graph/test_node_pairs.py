import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vesper.graph.graph import Graph
from vesper.mechanism.noisy_graph.node_pairs import (
    cells_of,
    descending_order,
    graph_of,
    num_cells_of,
    pairs_of,
)


@given(
    st.integers(2, 3_000_000_000).flatmap(lambda v: st.tuples(st.integers(0, v - 1), st.just(v)))
)
def test_pairs_of_a_cell(pair: tuple[int, int]) -> None:
    u, v = pair
    smaller, larger = pairs_of(np.array([v * (v - 1) // 2 + u]))
    assert (int(smaller[0]), int(larger[0])) == (u, v)


@given(st.integers(1, 12), st.integers(0, 1000))
def test_cells_and_graphs_are_inverse(num_nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.flatnonzero(rng.random(num_cells_of(num_nodes)) < 0.4)
    graph = graph_of(cells, num_nodes=num_nodes)
    assert np.array_equal(cells_of(graph), cells)
    smaller, larger = pairs_of(cells)
    plain = Graph.from_edges(num_nodes, zip(smaller.tolist(), larger.tolist(), strict=True))
    assert np.array_equal(graph.indptr, plain.indptr)
    assert np.array_equal(graph.neighbors, plain.neighbors)


def test_order_is_by_value_and_ties_by_the_cell_alone() -> None:
    cells = np.arange(1000)
    values = cells % 3
    order = descending_order(cells, values)
    assert (np.diff(values[order]) <= 0).all()
    assert not np.array_equal(order[:333], np.sort(order[:333]))
    few = descending_order(cells[::2], np.zeros(500, dtype=np.int64))
    all_of_them = descending_order(cells, np.zeros(1000, dtype=np.int64))
    assert [c for c in all_of_them if c % 2 == 0] == cells[::2][few].tolist()
