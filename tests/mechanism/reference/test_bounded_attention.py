"""Claim S-ATT: bounded scores cost as much as the sum, normalisation up to twice that."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.bounded_attention import BoundedAttention, Score, SoftmaxAttention
from vesper.mechanism.reference.certify import certify, moved_rows_by_edge
from vesper.mechanism.reference.linear import LinearAggregation

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
PAIR = Graph.from_edges(2, [(0, 1)])


def looked_up(table: Floats) -> Score:
    """A score function that looks up (sender, receiver) in a table."""

    def score(senders: Ids, receivers: Ids) -> Floats:
        scores: Floats = table[senders, receivers]
        return scores

    return score


def move(aggregation: LinearAggregation, messages: Floats) -> float:
    rows = [aggregation.aggregate(each, messages) for each in (PAIR, toggle_edge(PAIR, (0, 1)))]
    return float(np.linalg.norm(rows[0] - rows[1]))


def test_bounded_holds_for_all_corners_of_the_scores_on_three_nodes() -> None:
    for corner in product([0.0, 1.0], repeat=6):
        table = np.zeros((3, 3))
        table[~np.eye(3, dtype=bool)] = corner
        aggregation = BoundedAttention(looked_up(table))
        found = certify(aggregation.operator, num_nodes=3)
        assert found.move <= aggregation.edge_sensitivity()
        assert found.rows <= 2


def test_bounded_is_tight() -> None:
    aggregation = BoundedAttention(looked_up(np.ones((2, 2))))
    assert move(aggregation, np.ones((2, 1))) == pytest.approx(math.sqrt(2))
    assert move(aggregation, np.ones((2, 1))) > 0.99 * aggregation.edge_sensitivity()


@pytest.mark.parametrize("logit_bound", [0.0, 0.5, 1.0, 3.0])
def test_softmax_is_tight(logit_bound: float) -> None:
    table = np.where(np.eye(2, dtype=bool), -logit_bound, logit_bound)
    aggregation = SoftmaxAttention(looked_up(table), logit_bound=logit_bound)
    grown = math.exp(2 * logit_bound)
    assert aggregation.endpoint_shift() == pytest.approx(2 * grown / (grown + 1))
    messages = np.array([[1.0], [-1.0]])
    assert move(aggregation, messages) == pytest.approx(aggregation.edge_sensitivity(), rel=1e-9)
    assert move(aggregation, messages) > 0.99 * aggregation.edge_sensitivity()


def test_softmax_is_never_below_the_sum() -> None:
    zero = looked_up(np.zeros((2, 2)))
    at_one = SoftmaxAttention(zero, logit_bound=1.0)
    assert at_one.endpoint_shift() == pytest.approx(1.76, abs=2e-3)
    assert at_one.edge_sensitivity() == pytest.approx(2.49, abs=2e-3)
    for logit_bound in (0.0, 0.1, 10.0, 300.0):
        bound = SoftmaxAttention(zero, logit_bound=logit_bound).edge_sensitivity()
        assert math.sqrt(2) <= bound <= 2 * math.sqrt(2) * (1 + 1e-12)


def test_softmax_holds_for_all_corners_of_the_logits_on_three_nodes() -> None:
    for signs in product([-1.0, 1.0], repeat=9):
        aggregation = SoftmaxAttention(looked_up(np.reshape(signs, (3, 3))), logit_bound=1.0)
        found = certify(aggregation.operator, num_nodes=3)
        assert found.move <= aggregation.edge_sensitivity()
        assert found.rows == 2


@pytest.mark.parametrize("seed", range(10))
def test_softmax_holds_for_random_logits_and_moves_the_endpoints(seed: int) -> None:
    table = np.random.default_rng(seed).uniform(-2, 2, size=(5, 5))
    aggregation = SoftmaxAttention(looked_up(table), logit_bound=2.0)
    found = certify(aggregation.operator, num_nodes=5)
    assert (found.move <= aggregation.edge_sensitivity(), found.rows) == (True, 2)
    for _, edge, moved in moved_rows_by_edge(aggregation.operator, num_nodes=4):
        assert moved == set(edge)


def test_softmax_weights_of_a_receiver_sum_to_one() -> None:
    table = np.random.default_rng(0).uniform(-3, 3, size=(6, 6))
    star = Graph.from_edges(6, [(0, 1), (0, 2), (0, 3)])
    sums = SoftmaxAttention(looked_up(table), logit_bound=3.0).operator(star).sum(axis=1)
    assert sums.tolist() == pytest.approx([1.0] * 6)


@pytest.mark.parametrize("outside", [-0.01, 1.01, math.nan, math.inf])
def test_refuses_scores_outside_their_bounds(outside: float) -> None:
    table = np.full((2, 2), outside)
    with pytest.raises(InputError, match="score: expected numbers from 0 to 1, got 2 others"):
        BoundedAttention(looked_up(table)).operator(PAIR)
    with pytest.raises(InputError, match=r"logit: expected numbers from -0\.001 to 0\.001"):
        SoftmaxAttention(looked_up(table), logit_bound=0.001).operator(PAIR)


def test_refuses_logits_without_a_bound() -> None:
    for logit_bound in (-1.0, 301.0, math.inf, math.nan):
        with pytest.raises(InputError, match="logit_bound"):
            SoftmaxAttention(looked_up(np.zeros((2, 2))), logit_bound=logit_bound)
