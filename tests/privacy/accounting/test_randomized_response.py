"""Claim LABEL-RR."""

import importlib
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.accounting.randomized_response import (
    epsilon_of_keep,
    flip_probability,
    forward_targets,
    inverse_transition,
    keep_probability,
    response_posterior,
    transition,
    unbiased_weights,
)

mpmath: Any = importlib.import_module("mpmath")
mpmath.mp.dps = 60

EPSILONS = st.one_of(st.floats(1e-6, 1), st.floats(1, 60))
CLASSES = st.integers(2, 100)


@pytest.mark.parametrize(
    ("num_classes", "rounded"), [(2, [0.73, 0.88, 0.98]), (47, [0.06, 0.14, 0.54])]
)
def test_known_values(num_classes: int, rounded: list[float]) -> None:
    probabilities = [keep_probability(epsilon=e, num_classes=num_classes) for e in (1.0, 2.0, 4.0)]
    assert [round(keep, 2) for keep in probabilities] == rounded


@given(epsilon=EPSILONS, num_classes=CLASSES)
def test_the_ratio_never_exceeds_e_to_the_epsilon(epsilon: float, num_classes: int) -> None:
    keep = mpmath.mpf(keep_probability(epsilon=epsilon, num_classes=num_classes))
    flip = (1 - keep) / (num_classes - 1)  # as a sampler that compares with `keep` draws
    assert flip > 0
    assert flip <= keep <= mpmath.exp(epsilon) * flip


@given(epsilon=st.floats(1e-3, 15), num_classes=CLASSES)
def test_the_round_trip_is_on_the_safe_side(epsilon: float, num_classes: int) -> None:
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    back = epsilon_of_keep(keep=keep, num_classes=num_classes)
    exact = mpmath.log(mpmath.mpf(keep) * (num_classes - 1) / (1 - mpmath.mpf(keep)))
    assert exact <= back
    assert back == pytest.approx(epsilon, rel=1e-6)


@given(epsilon=st.floats(1e-3, 15), num_classes=st.integers(2, 12))
def test_keeping_labels_more_often_has_a_larger_epsilon(epsilon: float, num_classes: int) -> None:
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    more = keep + 0.01 * (1 - keep)
    assert epsilon_of_keep(keep=more, num_classes=num_classes) > epsilon


@given(epsilon=st.floats(0.05, 10), num_classes=st.integers(2, 50))
def test_the_inverse_undoes_the_response(epsilon: float, num_classes: int) -> None:
    forward = transition(epsilon=epsilon, num_classes=num_classes)
    np.testing.assert_allclose(forward.sum(axis=1), 1, rtol=1e-12)
    unbiased = forward @ inverse_transition(epsilon=epsilon, num_classes=num_classes)
    np.testing.assert_allclose(unbiased, np.eye(num_classes), atol=1e-9)


def test_the_diagonal_is_keep_and_the_rest_is_flip() -> None:
    forward = transition(epsilon=2.0, num_classes=3)
    assert forward[1, 1] == pytest.approx(keep_probability(epsilon=2.0, num_classes=3))
    assert forward[1, 2] == pytest.approx(flip_probability(epsilon=2.0, num_classes=3))


def test_always_keeping_the_label_is_no_privacy_and_cannot_be_planned() -> None:
    assert epsilon_of_keep(keep=1.0, num_classes=3) == math.inf
    assert epsilon_of_keep(keep=1 / 3, num_classes=3) < 1e-14
    for epsilon in (0.0, math.inf, math.nan):
        with pytest.raises(InputError, match="epsilon"):
            keep_probability(epsilon=epsilon, num_classes=3)
    with pytest.raises(InputError, match="num_classes"):
        keep_probability(epsilon=1.0, num_classes=1)
    with pytest.raises(InputError, match="keep"):
        epsilon_of_keep(keep=0.1, num_classes=3)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("num_classes", range(2, 51))
def test_both_directions_for_every_number_of_classes(num_classes: int, epsilon: float) -> None:
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    exact = mpmath.exp(epsilon) / (mpmath.exp(epsilon) + num_classes - 1)
    assert 0.999_999 * exact <= keep <= exact
    assert flip_probability(epsilon=epsilon, num_classes=num_classes) <= keep
    back = epsilon_of_keep(keep=keep, num_classes=num_classes)
    assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-12)
    with_more = epsilon_of_keep(keep=keep + 0.01 * (1 - keep), num_classes=num_classes)
    assert with_more > epsilon


def ratio_of_tables(channel: list[list[float]], num_labels: int) -> float:
    """Largest probability ratio of a reported table under two true tables, one label apart."""
    classes = range(len(channel))
    worst = 0.0
    for truth in product(classes, repeat=num_labels):
        for at, other in product(range(num_labels), classes):
            twin = (*truth[:at], other, *truth[at + 1 :])
            for seen in product(classes, repeat=num_labels):
                chances = [
                    math.prod(channel[t][s] for t, s in zip(table, seen, strict=True))
                    for table in (truth, twin)
                ]
                worst = max(worst, chances[0] / chances[1])
    return worst


@pytest.mark.parametrize(("num_classes", "num_labels"), [(2, 4), (3, 3), (4, 2), (7, 2)])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_claim_by_brute_force_over_all_tables(
    num_classes: int, num_labels: int, epsilon: float
) -> None:
    channel = transition(epsilon=epsilon, num_classes=num_classes).tolist()
    worst = ratio_of_tables(channel, num_labels)
    assert worst <= math.exp(epsilon) * (1 + 1e-12)  # holds, up to the rounding of this test
    assert worst >= math.exp(0.999 * epsilon)  # tight: a smaller epsilon is caught


def test_no_channel_found_by_search_keeps_a_label_more_often() -> None:
    # The best epsilon-DP channel is the solution of a linear programme.
    optimize: Any = importlib.import_module("scipy.optimize")
    for num_classes, epsilon in ((2, 1.0), (3, 0.5), (5, 2.0)):
        pairs = list(product(range(num_classes), repeat=2))
        rows = []
        for seen in range(num_classes):
            for a, b in pairs:
                row = np.zeros((num_classes, num_classes))
                row[a, seen], row[b, seen] = 1.0, row[b, seen] - math.exp(epsilon)
                if a != b:
                    rows.append(row.ravel())
        solution = optimize.linprog(
            -np.eye(num_classes).ravel() / num_classes,
            A_ub=np.array(rows),
            b_ub=np.zeros(len(rows)),
            A_eq=np.kron(np.eye(num_classes), np.ones(num_classes)),
            b_eq=np.ones(num_classes),
        )
        keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
        assert -solution.fun == pytest.approx(keep, rel=1e-7)


@given(epsilon=st.floats(0.1, 8), num_classes=st.integers(2, 50), seed=st.integers(0, 2**31))
def test_the_unbiased_loss_is_on_average_the_loss_at_the_true_class(
    epsilon: float, num_classes: int, seed: int
) -> None:
    losses = np.random.default_rng(seed).exponential(size=num_classes)  # (num_classes,)
    every = np.arange(num_classes)
    weights = unbiased_weights(every, epsilon=epsilon, num_classes=num_classes)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)
    average = transition(epsilon=epsilon, num_classes=num_classes) @ (weights @ losses)
    np.testing.assert_allclose(average, losses, rtol=1e-8, atol=1e-8)


@given(epsilon=st.floats(0.1, 8), num_classes=st.integers(2, 50), seed=st.integers(0, 2**31))
def test_the_forward_loss_is_minimal_at_the_true_posterior(
    epsilon: float, num_classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    true, other = rng.dirichlet(np.ones(num_classes), size=2)
    chances = response_posterior(true, epsilon=epsilon)  # of what is seen
    assert chances.sum() == pytest.approx(1)

    def loss(posterior: Any) -> float:
        return float(-chances @ np.log(response_posterior(posterior, epsilon=epsilon)))

    assert loss(true) < loss(other)


def test_forward_targets_have_the_gradient_of_the_forward_loss() -> None:
    rng = np.random.default_rng(0)
    logits, seen = rng.standard_normal((6, 4)), np.array([0, 1, 2, 3, 3, 0])

    def softmax(x: Any) -> Any:
        return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)

    def loss(x: Any) -> float:
        chances = response_posterior(softmax(x), epsilon=1.3)
        return float(-np.log(chances[np.arange(6), seen]).sum())

    targets = forward_targets(softmax(logits), seen, epsilon=1.3)
    np.testing.assert_allclose(targets.sum(axis=1), 1)
    gradient = softmax(logits) - targets
    for at in np.ndindex(6, 4):
        step = np.zeros((6, 4))
        step[at] = 1e-5
        slope = (loss(logits + step) - loss(logits - step)) / 2e-5
        assert gradient[at] == pytest.approx(slope, abs=1e-8)


def test_responses_outside_the_classes_are_refused() -> None:
    with pytest.raises(InputError, match=r"classes from 0 to 2, got responses=\[-1, 3\]"):
        unbiased_weights(np.array([0, -1, 3]), epsilon=1.0, num_classes=3)
    with pytest.raises(InputError, match="classes from 0 to 1"):
        forward_targets(np.full((1, 2), 0.5), np.array([2]), epsilon=1.0)
