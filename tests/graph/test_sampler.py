"""The sampler against an obvious one in plain Python, and by chi-square against wrong ones."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from vesper.errors import InputError
from vesper.graph import sampler as sampler_module
from vesper.graph.graph import Graph
from vesper.graph.sampler import Sampler, sample
from vesper.graph.subgraph import Subgraph

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


# The reference: the definition of draws.py and sampler.py, one number at a time.


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
    """Nodes, and the sampled rows of each layer as places in nodes, nearest the input first."""
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


def test_thread_count_changes_nothing_on_a_batch_that_uses_them() -> None:
    graph = cliques(200, 60)
    roots = np.random.default_rng(0).permutation(graph.num_nodes)[:5000]
    one, two, many = (
        sample(graph, roots, num_layers=2, max_degree=15, seed=1, step=2, num_threads=threads)
        for threads in (1, 2, 5)
    )
    assert len(one.layers[0].indices) > 2 * sampler_module.EDGES_A_THREAD
    assert_equal(one, two)
    assert_equal(one, many)


def test_a_sampler_forgets_earlier_calls() -> None:
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


def test_seed_step_and_hop_each_draw_afresh() -> None:
    graph = cliques(1, 200)
    roots = np.arange(200)  # all nodes, so places are node numbers at every hop

    def drawn(seed: int, step: int) -> list[list[list[int]]]:
        subgraph = sample(graph, roots, num_layers=2, max_degree=5, seed=seed, step=step)
        return [rows_of(subgraph, 0), rows_of(subgraph, 1)]

    layers = [*drawn(0, 0), *drawn(0, 1), *drawn(1, 0)]
    for one, other in combinations(layers, 2):
        assert sum(a == b for a, b in zip(one, other, strict=True)) < 3


def test_more_layers_keep_the_hops_before() -> None:
    sampler = [Sampler(cliques(30, 12), num_layers=k, max_degree=4, seed=7) for k in (1, 2)]
    one, two = (s.sample(np.arange(0, 300, 7), step=0) for s in sampler)
    np.testing.assert_array_equal(one.layers[-1].indices, two.layers[-1].indices)


# Uniformity. A draw is a set of 3 of 7 positions: 35 sets, equally likely.

DRAWS, DEGREE, FAN_OUT = 14_000, 7, 3


def is_uniform_over_subsets(rows: list[Row]) -> bool:
    """Chi-square over all 3-subsets of 7; anything else drawn is missing from every count."""
    counts = Counter(tuple(sorted(row)) for row in rows)
    subsets = list(combinations(range(DEGREE), FAN_OUT))
    expected = len(rows) / len(subsets)
    statistic = sum((counts[subset] - expected) ** 2 / expected for subset in subsets)
    return bool(chi2.sf(statistic, len(subsets)) > 1e-4)


def positions_in_cliques(nodes: NDArray[np.int64], rows: list[list[int]]) -> list[Row]:
    """Position of each drawn neighbour in the row it was drawn from (the clique without self)."""
    size = DEGREE + 1
    return [
        tuple((u % size) - (u % size > v % size) for u in nodes[row].tolist())
        for v, row in zip(nodes.tolist(), rows, strict=False)
    ]


def drawn_over_nodes() -> list[Row]:
    graph = cliques(DRAWS // (DEGREE + 1), DEGREE + 1)
    subgraph = sample(
        graph, np.arange(graph.num_nodes), num_layers=1, max_degree=FAN_OUT, seed=11, step=0
    )
    return positions_in_cliques(subgraph.nodes, rows_of(subgraph, 0))


def drawn_over_steps() -> list[Row]:
    sampler = Sampler(cliques(1, DEGREE + 1), num_layers=1, max_degree=FAN_OUT, seed=11)
    subgraphs = (sampler.sample(np.array([2]), step=step) for step in range(DRAWS // 2))
    return [positions_in_cliques(s.nodes, rows_of(s, 0))[0] for s in subgraphs]


def drawn_with_replacement() -> list[Row]:
    generator = np.random.default_rng(0)
    return [tuple(generator.integers(0, DEGREE, FAN_OUT).tolist()) for _ in range(DRAWS)]


def drawn_with_repeats_moved_up() -> list[Row]:
    """With replacement, then a repeat becomes the next free position: distinct, not uniform."""
    rows = []
    for row in drawn_with_replacement():
        distinct = list[int]()
        for position in row:
            while position in distinct:
                position = (position + 1) % DEGREE
            distinct.append(position)
        rows.append(tuple(distinct))
    return rows


def drawn_by_floyd_off_by_one() -> list[Row]:
    generator, rows = np.random.default_rng(0), []
    for _ in range(DRAWS):
        row = list[int]()
        for top in range(DEGREE - FAN_OUT, DEGREE):
            position = int(generator.integers(0, top))  # should be top + 1
            row.append(top if position in row else position)
        rows.append(tuple(row))
    return rows


@pytest.mark.parametrize("draw", [drawn_over_nodes, drawn_over_steps])
def test_every_subset_is_equally_likely(draw: Callable[[], list[Row]]) -> None:
    assert is_uniform_over_subsets(draw())


@pytest.mark.parametrize(
    "draw", [drawn_with_replacement, drawn_with_repeats_moved_up, drawn_by_floyd_off_by_one]
)
def test_wrong_samplers_are_rejected(draw: Callable[[], list[Row]]) -> None:
    assert not is_uniform_over_subsets(draw())


def test_neighbouring_nodes_and_steps_are_independent() -> None:
    graph = cliques(4000, 4)  # degree 3, one neighbour drawn: 9 equally likely pairs
    rows = []
    for step in (0, 1):
        subgraph = sample(
            graph, np.arange(graph.num_nodes), num_layers=1, max_degree=1, seed=0, step=step
        )
        drawn = subgraph.nodes[subgraph.layers[0].indices]  # (num_nodes,)
        rows.append((drawn - subgraph.nodes) % 4)  # 1 to 3
    for one, other in ((rows[0], rows[1]), (rows[0][:-1:2], rows[0][1::2])):
        counts = np.bincount(3 * (one - 1) + other - 1, minlength=9)
        expected = len(one) / 9
        assert chi2.sf(np.square(counts - expected).sum() / expected, 8) > 1e-4


# Edges of the input space.


def test_no_roots() -> None:
    subgraph = sample(
        cliques(2, 3), np.array([], dtype=np.int64), num_layers=2, max_degree=2, seed=0, step=0
    )
    assert subgraph.nodes.tolist() == []
    assert [block.indptr.tolist() for block in subgraph.layers] == [[0], [0]]
    assert [block.num_senders for block in subgraph.layers] == [0, 0]


def test_no_nodes() -> None:
    graph = Graph.from_edges(0, [])
    nothing = np.array([], dtype=np.int64)
    assert len(sample(graph, nothing, num_layers=1, max_degree=1, seed=0, step=0).nodes) == 0


def test_isolated_nodes_have_empty_rows() -> None:
    graph = Graph.from_edges(5, [(0, 1)])
    subgraph = sample(graph, np.array([4, 0, 2]), num_layers=2, max_degree=9, seed=0, step=0)
    assert subgraph.nodes.tolist() == [4, 0, 2, 1]
    assert rows_of(subgraph, 1) == [[], [3], []]
    assert rows_of(subgraph, 0) == [[], [3], [], [1]]


def test_wide_and_memory_mapped_neighbours_give_the_same(tmp_path: Path) -> None:
    graph = cliques(30, 12)
    wide = Graph(graph.indptr, graph.neighbors.astype(np.int64))
    np.save(tmp_path / "neighbors.npy", graph.neighbors)
    mapped = Graph(graph.indptr, np.load(tmp_path / "neighbors.npy", mmap_mode="r"))
    plain, *others = (
        sample(g, np.arange(0, 99, 2), num_layers=2, max_degree=4, seed=1, step=1)
        for g in (graph, wide, mapped)
    )
    for other in others:
        assert_equal(plain, other)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"num_layers": 0}, "num_layers"),
        ({"max_degree": 0}, "max_degree"),
        ({"num_threads": 0}, "num_threads"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
    ],
)
def test_wrong_settings_are_named(changed: dict[str, int], named: str) -> None:
    right = {"num_layers": 1, "max_degree": 1, "seed": 0}
    with pytest.raises(InputError, match=f"^{named}: expected"):
        Sampler(cliques(1, 3), **{**right, **changed})


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        (np.array([0, 3, -1]), "expected node numbers from 0 to 2, got 2 others .*3, -1"),
        (np.array([0, 2, 0, 2]), "expected distinct nodes, got 2 of them .*first 2: 0, 2"),
        (np.array([0.5]), "expected one row of integers, got float64"),
        (np.array([[0]]), "expected one row of integers, got int64 of shape"),
    ],
)
def test_wrong_roots_are_named(roots: NDArray[np.int64], message: str) -> None:
    sampler = Sampler(cliques(1, 3), num_layers=1, max_degree=1, seed=0)
    with pytest.raises(InputError, match=message):
        sampler.sample(roots, step=0)


def test_a_wrong_step_is_named() -> None:
    sampler = Sampler(cliques(1, 3), num_layers=1, max_degree=1, seed=0)
    with pytest.raises(InputError, match="^step: expected"):
        sampler.sample(np.array([0]), step=-1)


def test_more_than_int32_can_number_is_refused() -> None:
    sampler = Sampler(cliques(1, 30), num_layers=1, max_degree=9, seed=0)
    with (
        patch.object(sampler_module, "MOST_PLACES", 9),
        pytest.raises(InputError, match="9 edges for 1 nodes, more than 9"),
    ):
        sampler.sample(np.array([0]), step=0)
