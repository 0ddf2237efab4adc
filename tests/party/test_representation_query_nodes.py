"""Query nodes: the test nodes, or without them all nodes that are not on the roster."""

import numpy as np

from vesper.party.representation import query_nodes_of

ROSTER = np.array([5, 1, 3, 0])


def test_test_nodes_are_the_end_of_the_roster() -> None:
    assert query_nodes_of(ROSTER, num_test=2, num_nodes=9).tolist() == [3, 0]


def test_without_test_nodes_all_nodes_that_are_not_on_the_roster() -> None:
    assert query_nodes_of(ROSTER, num_test=0, num_nodes=7).tolist() == [2, 4, 6]


def test_there_may_be_none() -> None:
    assert query_nodes_of(np.arange(4), num_test=0, num_nodes=4).tolist() == []
