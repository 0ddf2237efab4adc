import numpy as np
import pytest

from vesper.datasets.finance.transfers import (
    DEGREE_COUNTS,
    PaymentGraph,
    degree_sequence,
    draw_graph,
)


def draw(num_nodes: int, *, num_risky: int | None = None, seed: int = 0) -> PaymentGraph:
    return draw_graph(
        num_nodes,
        num_edges=round(1.0805 * num_nodes),
        num_risky=round(0.08 * num_nodes) if num_risky is None else num_risky,
        rng=np.random.default_rng(seed),
    )


def degrees(graph: PaymentGraph, num_nodes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.bincount(np.concatenate([graph.low, graph.high]), minlength=num_nodes)


@pytest.mark.parametrize("num_nodes", [40, 41, 97, 160, 1000, 30_000])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_number_of_edges_is_exact_and_edges_are_distinct(num_nodes: int, seed: int) -> None:
    graph = draw(num_nodes, seed=seed)
    assert len(graph.low) == round(1.0805 * num_nodes)
    assert (graph.low < graph.high).all()
    assert graph.high.max() < num_nodes
    assert len(np.unique(graph.low * num_nodes + graph.high)) == len(graph.low)


def test_degrees_follow_the_histogram() -> None:
    num_nodes = 100_000
    counts = np.bincount(np.minimum(degrees(draw(num_nodes), num_nodes), 50), minlength=51)
    wanted = np.array(DEGREE_COUNTS) / sum(DEGREE_COUNTS) * num_nodes
    assert np.abs(counts - wanted).sum() / num_nodes < 0.02
    assert counts[0] == pytest.approx(wanted[0], rel=0.005)
    for k in (5, 10, 20, 30):  # the tail, not only the bulk
        assert counts[k:].sum() == pytest.approx(wanted[k:].sum(), rel=0.1)


def test_degree_sequence_is_the_histogram() -> None:
    sequence = degree_sequence(sum(DEGREE_COUNTS))
    assert np.array_equal(np.bincount(np.minimum(sequence, 50)), DEGREE_COUNTS)
    assert sequence.mean() == pytest.approx(2 * 1_223_685 / 1_132_511, rel=0.005)


def test_risky_users_have_risky_neighbours() -> None:
    num_nodes, num_risky = 30_000, 2_400
    graph = draw(num_nodes, num_risky=num_risky)
    ends = np.concatenate([np.stack([graph.low, graph.high]), np.stack([graph.high, graph.low])], 1)
    from_risky = ends[0] < num_risky
    among_neighbours = [(ends[1][rows] < num_risky).mean() for rows in (from_risky, ~from_risky)]
    assert among_neighbours[0] > 0.5
    assert among_neighbours[1] < 0.1


def test_some_risky_users_are_isolated() -> None:
    num_nodes, num_risky = 30_000, 2_400
    isolated = degrees(draw(num_nodes), num_nodes) == 0
    assert 0.25 < isolated[:num_risky].mean() < 0.4
    assert isolated[num_risky:].mean() == pytest.approx(0.41, abs=0.02)


def test_seeds() -> None:
    assert np.array_equal(draw(500, seed=1).low, draw(500, seed=1).low)
    assert not np.array_equal(draw(500, seed=1).low, draw(500, seed=2).low)
