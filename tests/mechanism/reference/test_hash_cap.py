"""Claim S-HASH-CAP: a threshold costs as much as the sum; a fixed number costs twice that."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import certify, moved_rows_by_edge
from vesper.mechanism.reference.hash_cap import HashCap, SmallestHashes, pair_hash
from vesper.mechanism.reference.linear import LinearAggregation, degrees_of

Floats = NDArray[np.float64]
PATH = Graph.from_edges(4, [(2, 0), (0, 1), (1, 3)])


def move(aggregation: LinearAggregation, graph: Graph, messages: Floats) -> float:
    rows = [aggregation.aggregate(each, messages) for each in (graph, toggle_edge(graph, (0, 1)))]
    return float(np.linalg.norm(rows[0] - rows[1]))


def test_threshold_is_tight_when_everything_is_kept() -> None:
    aggregation = HashCap(np.ones(4), salt=0)
    assert move(aggregation, PATH, np.ones((4, 1))) == pytest.approx(math.sqrt(2))
    assert move(aggregation, PATH, np.ones((4, 1))) > 0.99 * aggregation.edge_sensitivity()


def test_threshold_moves_only_endpoints_that_keep_each_other() -> None:
    aggregation = HashCap(np.full(5, 0.5), salt=3)
    nodes = np.arange(5)
    is_kept = pair_hash(nodes[None, :].repeat(5, 0), nodes[:, None].repeat(5, 1), salt=3) < 0.5
    numbers_moved = set()
    for _, (a, b), moved in moved_rows_by_edge(aggregation.operator, num_nodes=5):
        assert moved == {v for v, u in ((a, b), (b, a)) if is_kept[v, u]}
        numbers_moved.add(len(moved))
    assert numbers_moved == {0, 1, 2}


def swapping_salt() -> int:
    """First salt for which both inner nodes of the path prefer each other to their leaf."""
    for salt in range(100):
        across = pair_hash(np.array([1, 0]), np.array([0, 1]), salt=salt)
        leaves = pair_hash(np.array([2, 3]), np.array([0, 1]), salt=salt)
        if (across < leaves).all():
            return salt
    raise AssertionError("no salt below 100 prefers both")


def test_a_fixed_number_swaps_neighbours_and_costs_twice() -> None:
    aggregation = SmallestHashes(max_degree=1, salt=swapping_salt())
    messages = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    assert move(aggregation, PATH, messages) == pytest.approx(2 * math.sqrt(2))
    assert move(aggregation, PATH, messages) > 0.99 * aggregation.edge_sensitivity()


@pytest.mark.parametrize("max_degree", [1, 2, 3])
def test_the_smallest_hashes_are_kept_and_at_most_two_rows_move(max_degree: int) -> None:
    aggregation = SmallestHashes(max_degree=max_degree, salt=7)
    certificate = certify(aggregation.operator, num_nodes=5)
    assert certificate.rows == 2
    clique = Graph.from_edges(6, [(a, b) for a in range(6) for b in range(a)])
    rows = aggregation.operator(clique)
    assert rows.sum(axis=1).tolist() == [max_degree] * 6
    for v in range(6):
        others = np.array([u for u in range(6) if u != v])
        hashes = pair_hash(others, np.full(5, v), salt=7)
        best = others[np.argsort(hashes)[:max_degree]]
        assert set(np.flatnonzero(rows[v]).tolist()) == set(best.tolist())


def test_few_neighbours_are_all_kept() -> None:
    aggregation = SmallestHashes(max_degree=2, salt=0)
    assert aggregation.operator(PATH).sum(axis=1).tolist() == degrees_of(PATH).tolist()


def test_hashes_are_uniform_and_depend_on_sender_receiver_and_salt() -> None:
    senders, receivers = np.divmod(np.arange(40_000), 200)
    hashes = pair_hash(senders, receivers, salt=11)
    counts = np.histogram(hashes, bins=20, range=(0, 1))[0]
    # chi-square with 19 degrees of freedom: above 43.8 once in a thousand
    assert ((counts - 2000) ** 2 / 2000).sum() < 43.8
    assert len(np.unique(hashes)) == 40_000
    assert abs(np.corrcoef(hashes, pair_hash(receivers, senders, salt=11))[0, 1]) < 0.02
    assert abs(np.corrcoef(hashes, pair_hash(senders, receivers, salt=12))[0, 1]) < 0.02


def test_refuses_thresholds_and_salts_out_of_range() -> None:
    for thresholds in (np.array([0.5, 1.5]), np.array([-0.1]), np.array([np.nan])):
        with pytest.raises(InputError, match="thresholds"):
            HashCap(thresholds, salt=0)
    with pytest.raises(InputError, match="expected 4, one per node, got 2"):
        HashCap(np.ones(2), salt=0).operator(PATH)
    for salt in (-1, 1 << 63):
        with pytest.raises(InputError, match="salt"):
            HashCap(np.ones(2), salt=salt)
    with pytest.raises(InputError, match="max_degree"):
        SmallestHashes(max_degree=0, salt=0)
