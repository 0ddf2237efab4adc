"""Coin tosses decide which canaries are present, in pairs of runs."""

import numpy as np
import pytest

from vesper.audit.canaries import coins_of, place_edges
from vesper.audit.small_graphs import ring
from vesper.audit.trial import draw_pairs
from vesper.errors import InputError
from vesper.graph.edges.edge_relation import differing_edge
from vesper.graph.edges.pairs import are_edges, degrees_of

CANARIES = ring(split="train", count=4)
PAIRS = np.concatenate(CANARIES.edges)


def test_coins_decide_which_canaries_are_present() -> None:
    coins = np.array([True, False, True, False])
    graph = CANARIES.holdings(coins).graph
    assert are_edges(graph, PAIRS).tolist() == coins.tolist()
    one = np.array([False, True, False, False])
    edge = differing_edge(CANARIES.data.graph, CANARIES.holdings(one).graph)
    assert edge == tuple(PAIRS[1].tolist())


def test_runs_come_in_complementary_pairs_and_pairs_differ() -> None:
    coins = [coins_of(run, num_canaries=50, seed=3) for run in range(8)]
    for first, second in zip(coins[::2], coins[1::2], strict=True):
        assert (first != second).all()
    assert (coins[0] != coins[2]).any()
    assert 0.3 < np.mean(coins[::2]) < 0.7


def test_an_edge_of_the_graph_that_becomes_a_canary_is_removed() -> None:
    placed = place_edges(CANARIES.data, CANARIES.labels, np.array([[0, 1], [5, 9]]))
    assert not are_edges(placed.data.graph, np.concatenate(placed.edges)).any()
    assert degrees_of(placed.data.graph)[0] == degrees_of(CANARIES.data.graph)[0] - 1


def test_the_first_canary_alone_leaves_the_others_out() -> None:
    alone = CANARIES.first()
    graph = alone.holdings(np.array([True])).graph
    assert are_edges(graph, PAIRS).tolist() == [True, False, False, False]


def test_the_largest_degree_counts_canaries() -> None:
    assert CANARIES.largest_degree == 5


def test_shared_nodes_and_too_many_canaries_are_refused() -> None:
    with pytest.raises(InputError, match="share no node"):
        place_edges(CANARIES.data, CANARIES.labels, np.array([[0, 1], [1, 2]]))
    with pytest.raises(InputError, match="--canaries"):
        draw_pairs(CANARIES.data, CANARIES.labels, split="val", count=21, seed=0)
