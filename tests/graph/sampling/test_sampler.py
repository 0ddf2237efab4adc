"""The sampler, compared exactly with a naive one in plain Python."""

from collections.abc import Iterator
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.sampling import sampler as sampler_module
from vesper.graph.sampling.sampler import Sampler, sample
from vesper.graph.sampling.subgraph import Subgraph

Row = tuple[int, ...]
MASK, GAMMA = (1 << 64) - 1, 0x9E3779B97F4A7C15

graphs = st.integers(1, 14).flatmap(
    lambda n: st.builds(
        Graph.from_edges,
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=80),
    )
)


def cliques(count: int, size: int) -> Graph:
    """Disjoint cliques: every node has degree size - 1."""
    nodes = np.arange(count * size).reshape(count, 1, size).repeat(size, axis=1)
    others = nodes[:, ~np.eye(size, dtype=bool)]  # (count, size * (size - 1))
    indptr = np.arange(count * size + 1) * (size - 1)
    return Graph(indptr, others.reshape(-1).astype(np.int32))


# The reference: the definitions in expand.py and sampler.py, one number at a time.


def mix(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def absorb(key: int, word: int) -> int:
    return mix((key ^ word) + GAMMA & MASK)


def below(words: Iterator[int], bound: int) -> int:
    while True:
        product = (next(words) >> 32) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


def words_from(counter: int) -> Iterator[int]:
    while True:
        counter = counter + GAMMA & MASK
        yield mix(counter)


def reference_row(row: list[int], max_degree: int, key: int, node: int) -> list[int]:
    if len(row) <= max_degree:
        return row
    words, positions = words_from(absorb(key, node)), list[int]()
    for top in range(len(row) - max_degree, len(row)):
        position = below(words, top + 1)
        positions.append(top if position in positions else position)
    return [row[position] for position in positions]


def reference(
    graph: Graph, roots: list[int], *, num_layers: int, max_degree: int, seed: int, step: int
) -> tuple[list[int], list[list[list[int]]]]:
    """Return nodes, and the rows of each layer as places in nodes, nearest the input first."""
    nodes, layers = list(roots), []
    for hop in range(1, num_layers + 1):
        key = absorb(absorb(absorb(0, seed), step), hop)
        rows = [
            reference_row(
                graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]].tolist(), max_degree, key, v
            )
            for v in nodes
        ]
        nodes = nodes + sorted({u for row in rows for u in row} - set(nodes))
        layers.append([[nodes.index(u) for u in row] for row in rows])
    return nodes, layers[::-1]


def rows_of(subgraph: Subgraph, layer: int) -> list[list[int]]:
    block = subgraph.layers[layer]
    return [
        block.indices[a:b].tolist()
        for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True)
    ]


def assert_equal(one: Subgraph, other: Subgraph) -> None:
    np.testing.assert_array_equal(one.nodes, other.nodes)
    for a, b in zip(one.layers, other.layers, strict=True):
        assert a.num_senders == b.num_senders
        np.testing.assert_array_equal(a.indptr, b.indptr)
        np.testing.assert_array_equal(a.indices, b.indices)


@given(graphs, st.integers(1, 3), st.integers(1, 6), st.integers(0, MASK), st.data())
def test_equals_the_reference_on_any_graph_and_thread_count(
    graph: Graph, num_layers: int, max_degree: int, seed: int, data: st.DataObject
) -> None:
    roots = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), unique=True))
    nodes, layers = reference(
        graph, roots, num_layers=num_layers, max_degree=max_degree, seed=seed, step=3
    )
    for num_threads in (1, 2, 3):
        with patch.object(sampler_module, "EDGES_A_THREAD", 1):
            subgraph = sample(
                graph,
                np.array(roots, dtype=np.int64),
                num_layers=num_layers,
                max_degree=max_degree,
                seed=seed,
                step=3,
                num_threads=num_threads,
            )
        assert subgraph.nodes.tolist() == nodes
        assert [rows_of(subgraph, k) for k in range(num_layers)] == layers


@given(graphs, st.integers(1, 3), st.integers(1, 6), st.integers(0, 99))
def test_structure(graph: Graph, num_layers: int, max_degree: int, seed: int) -> None:
    roots = np.arange(graph.num_nodes)[:: 1 + seed % 3]
    subgraph = sample(
        graph, roots, num_layers=num_layers, max_degree=max_degree, seed=seed, step=seed
    )
    assert len(set(subgraph.nodes.tolist())) == len(subgraph.nodes)
    np.testing.assert_array_equal(subgraph.roots, roots)
    assert subgraph.layers[0].num_senders == len(subgraph.nodes)
    for nearer, farther in zip(subgraph.layers[1:], subgraph.layers[:-1], strict=True):
        assert nearer.num_senders == farther.num_receivers
    for layer, block in enumerate(subgraph.layers):
        assert block.indices.dtype == block.indptr.dtype == np.int32
        for place, row in enumerate(rows_of(subgraph, layer)):
            node = subgraph.nodes[place]
            true = graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]].tolist()
            drawn = subgraph.nodes[row].tolist()
            assert len(drawn) == min(max_degree, len(true)) == block.degrees[place]
            assert len(set(drawn)) == len(drawn)
            assert set(drawn) <= set(true)
            if len(true) <= max_degree:
                assert drawn == true
    reached = {place for block in subgraph.layers for place in block.indices.tolist()}
    assert reached | set(range(len(roots))) == set(range(len(subgraph.nodes)))


def test_equals_the_reference_on_rows_of_more_than_one_word() -> None:
    graph = cliques(2, 150)
    subgraph = sample(
        graph, np.array([160, 3, 70]), num_layers=2, max_degree=20, seed=4, step=1, num_threads=1
    )
    nodes, layers = reference(graph, [160, 3, 70], num_layers=2, max_degree=20, seed=4, step=1)
    assert subgraph.nodes.tolist() == nodes
    assert [rows_of(subgraph, k) for k in range(2)] == layers


def test_thread_count_changes_nothing_on_a_large_batch() -> None:
    graph = cliques(200, 60)
    roots = np.random.default_rng(0).permutation(graph.num_nodes)[:5000]
    one, two, many = (
        sample(graph, roots, num_layers=2, max_degree=15, seed=1, step=2, num_threads=threads)
        for threads in (1, 2, 5)
    )
    assert len(one.layers[0].indices) > 2 * sampler_module.EDGES_A_THREAD
    assert_equal(one, two)
    assert_equal(one, many)


def test_a_sampler_does_not_depend_on_earlier_calls() -> None:
    graph = cliques(30, 12)
    sampler = Sampler(graph, num_layers=2, max_degree=4, seed=7)
    first = sampler.sample(np.arange(0, 90, 3), step=5)
    sampler.sample(np.arange(200, 300), step=6)
    with pytest.raises(InputError):
        sampler.sample(np.array([4, 4]), step=6)
    assert_equal(first, sampler.sample(np.arange(0, 90, 3), step=5))
    assert_equal(
        first,
        sample(graph, np.arange(0, 90, 3), num_layers=2, max_degree=4, seed=7, step=5),
    )


def test_draws_of_a_node_do_not_depend_on_the_other_roots() -> None:
    sampler = Sampler(cliques(30, 12), num_layers=1, max_degree=4, seed=7)
    together = sampler.sample(np.arange(100), step=0)
    alone = sampler.sample(np.array([40]), step=0)
    assert (
        together.nodes[rows_of(together, 0)[40]].tolist()
        == alone.nodes[rows_of(alone, 0)[0]].tolist()
    )


def test_each_seed_step_and_hop_has_its_own_draws() -> None:
    graph = cliques(1, 200)
    roots = np.arange(200)  # all nodes, so places are node numbers at every hop

    def drawn(seed: int, step: int) -> list[list[list[int]]]:
        subgraph = sample(graph, roots, num_layers=2, max_degree=5, seed=seed, step=step)
        return [rows_of(subgraph, 0), rows_of(subgraph, 1)]

    layers = [*drawn(0, 0), *drawn(0, 1), *drawn(1, 0)]
    for one, other in combinations(layers, 2):
        assert sum(a == b for a, b in zip(one, other, strict=True)) < 3


def test_more_layers_keep_the_earlier_hops() -> None:
    sampler = [Sampler(cliques(30, 12), num_layers=k, max_degree=4, seed=7) for k in (1, 2)]
    one, two = (s.sample(np.arange(0, 300, 7), step=0) for s in sampler)
    np.testing.assert_array_equal(one.layers[-1].indices, two.layers[-1].indices)
