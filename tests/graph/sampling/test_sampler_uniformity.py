"""Chi-square tests of uniformity, which the sampler passes and three wrong ones fail.

A draw is a set of 3 of 7 positions: 35 sets, equally likely.
"""

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler, sample
from vesper.graph.sampling.subgraph import Subgraph

Row = tuple[int, ...]

DRAWS, DEGREE, FAN_OUT = 14_000, 7, 3


def cliques(count: int, size: int) -> Graph:
    """Disjoint cliques: every node has degree size - 1."""
    pairs = list(combinations(range(size), 2))
    return Graph.from_edges(
        count * size, [(k * size + a, k * size + b) for k in range(count) for a, b in pairs]
    )


def rows_of(subgraph: Subgraph) -> list[list[int]]:
    (block,) = subgraph.layers
    bounds = zip(block.indptr[:-1], block.indptr[1:], strict=True)
    return [block.indices[a:b].tolist() for a, b in bounds]


def is_uniform_over_subsets(rows: list[Row]) -> bool:
    """Chi-square over all 3-subsets of 7; any other draw is missing from every count."""
    counts = Counter(tuple(sorted(row)) for row in rows)
    subsets = list(combinations(range(DEGREE), FAN_OUT))
    expected = len(rows) / len(subsets)
    statistic = sum((counts[subset] - expected) ** 2 / expected for subset in subsets)
    return bool(chi2.sf(statistic, len(subsets)) > 1e-4)


def positions_in_cliques(nodes: NDArray[np.int64], rows: list[list[int]]) -> list[Row]:
    """Position of each drawn neighbour in its row (the clique without the node itself)."""
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
    return positions_in_cliques(subgraph.nodes, rows_of(subgraph))


def drawn_over_steps() -> list[Row]:
    sampler = Sampler(cliques(1, DEGREE + 1), num_layers=1, max_degree=FAN_OUT, seed=11)
    subgraphs = (sampler.sample(np.array([2]), step=step) for step in range(DRAWS // 2))
    return [positions_in_cliques(s.nodes, rows_of(s))[0] for s in subgraphs]


def drawn_with_replacement() -> list[Row]:
    generator = np.random.default_rng(0)
    return [tuple(generator.integers(0, DEGREE, FAN_OUT).tolist()) for _ in range(DRAWS)]


def drawn_with_repeats_moved_up() -> list[Row]:
    """Draw with replacement, then move repeats to the next free position: not uniform."""
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
