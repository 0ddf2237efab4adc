"""Lower bounds for scores of known laws: near the truth, too high no more often than stated."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.audit.bound import Guesses, guesses, lower_bounds
from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import epsilon_of

DELTA = 1e-5


def gaussian_scores(
    mu: float, runs: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log likelihood ratios of a Gaussian mechanism, with and without the edge."""
    rng = np.random.default_rng(seed)
    noise = mu * rng.standard_normal((2, runs))
    return mu**2 / 2 + noise[0], -(mu**2) / 2 + noise[1]


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_a_gaussian_is_bounded_from_below_with_the_stated_confidence(mu: float) -> None:
    truth = epsilon_of(mu=mu, delta=DELTA)
    wrong = 0
    for seed in range(60):
        bounds = lower_bounds(
            *gaussian_scores(mu, 200, seed), delta=DELTA, confidence=0.9, middle=0.0
        )
        assert bounds.epsilon_if_gaussian is not None
        wrong += bounds.mu > mu or bounds.epsilon > truth
        assert bounds.epsilon_if_gaussian <= epsilon_of(mu=bounds.mu, delta=DELTA)
    assert wrong <= 12  # two bounds, each at 0.9: 12 expected at most, far fewer as they are safe


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_many_trials_give_a_bound_near_the_truth(mu: float) -> None:
    scores = gaussian_scores(mu, 6_000, 1)
    bounds = lower_bounds(*scores, delta=DELTA, confidence=0.95, middle=0.0)
    assert 0.75 * mu < bounds.mu < mu
    unknown = lower_bounds(*scores, delta=DELTA, confidence=0.95)
    assert 0.65 * mu < unknown.mu < mu


def test_randomised_response_is_bounded_without_an_assumption() -> None:
    epsilon, runs = 2.0, 6_000
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    rng = np.random.default_rng(0)
    with_edge = (rng.random(runs) < keep).astype(float)
    without = (rng.random(runs) > keep).astype(float)
    bounds = lower_bounds(with_edge, without, delta=0.0, confidence=0.95, middle=0.5)
    assert 0.9 * epsilon < bounds.epsilon < epsilon
    assert bounds.epsilon_if_gaussian is None


def test_scores_without_information_give_a_bound_of_zero() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal((2, 200))
        bounds = lower_bounds(scores[0], scores[1], delta=DELTA, confidence=0.999, middle=0.0)
        assert bounds.epsilon == bounds.mu == 0.0
    same = np.zeros(100)
    assert lower_bounds(same, same, delta=DELTA, confidence=0.95).epsilon == 0.0


def test_perfect_scores_give_a_bound_limited_by_the_number_of_trials() -> None:
    bounds = lower_bounds(np.ones(1000), np.zeros(1000), delta=DELTA, confidence=0.95, middle=0.5)
    assert bounds.guesses.detections == bounds.guesses.with_edge == 500
    assert 4.5 < bounds.epsilon < 5.5
    assert bounds.mu > 5


def test_the_threshold_is_chosen_without_the_half_that_counts() -> None:
    rng = np.random.default_rng(3)
    with_edge, without = rng.standard_normal((2, 400))
    with_edge[200:] += 5  # only the second half is informative
    before = lower_bounds(with_edge, without, delta=DELTA, confidence=0.95)
    without[200:] = rng.permutation(without[200:])  # reorder the half that counts
    assert lower_bounds(with_edge, without, delta=DELTA, confidence=0.95) == before


def test_misses_count_as_hits_do() -> None:
    hits = Guesses(detections=90, with_edge=100, false_alarms=0, without_edge=100)
    misses = Guesses(detections=100, with_edge=100, false_alarms=10, without_edge=100)
    assert hits.epsilon(delta=DELTA, confidence=0.95) == pytest.approx(
        misses.epsilon(delta=DELTA, confidence=0.95)
    )


def test_unequal_numbers_of_trials_are_refused() -> None:
    with pytest.raises(InputError, match="as many with the edge as without, got 10 and 9"):
        Guesses(detections=5, with_edge=10, false_alarms=1, without_edge=9).mu(confidence=0.95)


def test_one_limit_for_both_kinds_is_safe_however_their_probabilities_differ() -> None:
    """Exact, over all outcomes: hits with probability p, correct rejections with probability q."""
    trials, confidence = 12, 0.9
    for p, q in [(0.5, 0.5), (0.9, 0.3), (0.2, 0.95), (0.99, 0.6), (1.0, 0.4)]:
        truth = max(0.0, 2 * float(stats.norm.ppf((p + q) / 2)))
        hits = stats.binom(trials, p).pmf(np.arange(trials + 1))
        rejections = stats.binom(trials, q).pmf(np.arange(trials + 1))
        wrong = 0.0
        for detections in range(trials + 1):
            for rejected in range(trials + 1):
                counts = Guesses(
                    detections=detections,
                    with_edge=trials,
                    false_alarms=trials - rejected,
                    without_edge=trials,
                )
                too_high = counts.mu(confidence=confidence) > truth
                wrong += float(hits[detections] * rejections[rejected]) * too_high
        assert wrong <= 1 - confidence + 1e-12


def test_a_score_on_the_threshold_does_not_count() -> None:
    counts = guesses(np.array([0.0, 1.0]), np.array([0.0, -1.0]), threshold=0.0)
    assert (counts.detections, counts.false_alarms) == (1, 0)
