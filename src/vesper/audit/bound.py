"""Lower bound on epsilon from the scores of trials with and without an edge.

    detections   = share of trials with the edge that score above a threshold
    false_alarms = share of trials without it that do

    no assumption:   epsilon >= log((detections - delta) / false_alarms), and likewise for misses
    Gaussian noise:  mu >= 2 Phi^-1((detections + 1 - false_alarms) / 2);  epsilon follows from mu

Rates enter as Clopper and Pearson limits that hold together with the stated confidence. There are
as many trials with the edge as without: the number of correct guesses then spreads no more than a
binomial with their mean probability (Hoeffding 1956), so one limit serves both kinds.

The second bound is for mechanisms whose noise is Gaussian *of a size that is not trusted*: their
trade-off curve is that of one mu (Dong, Roth and Su 2022), so that one point determines all of it
(Nasr et al. 2023). Without that assumption a thousand trials cannot show more than epsilon 6.

A threshold is fixed beforehand, or chosen on the first half of the trials and used on the second.

Confidence limits of a probability, for k successes in n trials (Clopper and Pearson 1934):

    at_least = smallest p with  P(Binomial(n, p) >= k) >= 1 - confidence
    at_most  = largest p with   P(Binomial(n, p) <= k) >= 1 - confidence

Each holds with at least the stated confidence, whatever the true probability; rounding is outward.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import epsilon_of

HALVINGS = 48


@lru_cache(maxsize=4096)
def at_least(successes: int, trials: int, *, confidence: float) -> float:
    """Lower confidence limit of the probability behind `successes` in `trials`.

    >>> round(at_least(10, 10, confidence=0.95), 4)
    0.7411
    """
    _refuse_bad_counts(successes, trials, confidence)
    if successes == 0:
        return 0.0
    log_rest = math.log1p(-confidence)
    counts = np.arange(successes, trials + 1)  # (outcomes,)
    ways = _log_ways(trials)[successes:]  # (outcomes,)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _log_tail(ways, counts, trials, middle) < log_rest:
            low = middle
        else:
            high = middle
    return low


def at_most(successes: int, trials: int, *, confidence: float) -> float:
    """Upper confidence limit of the probability behind `successes` in `trials`.

    >>> round(at_most(0, 100, confidence=0.95), 4)
    0.0295
    """
    return 1.0 - at_least(trials - successes, trials, confidence=confidence)


@lru_cache(maxsize=8)
def _log_ways(trials: int) -> NDArray[np.float64]:
    """Log of n choose k for all k."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    ways: NDArray[np.float64] = logs[-1] - logs - logs[::-1]
    return ways


def _log_tail(
    ways: NDArray[np.float64], counts: NDArray[np.int64], trials: int, chance: float
) -> float:
    terms = ways + counts * math.log(chance) + (trials - counts) * math.log1p(-chance)
    largest = float(terms.max())
    return largest + math.log(float(np.exp(terms - largest).sum()))


def _refuse_bad_counts(successes: int, trials: int, confidence: float) -> None:
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(f"trials: expected 0 <= {successes} <= {trials} and at least one trial")
    if not 0 < confidence < 1:
        raise InputError(f"confidence: expected a number between 0 and 1, got {confidence:g}")


Scores = NDArray[np.float64]

THRESHOLDS = 40
"""Number of thresholds tried on the first half, evenly spaced among the sorted scores."""

CONVERSION_ERROR = 1e-9
"""Relative error that `epsilon_of` rounds up by at most; a lower bound must be rounded down."""


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Counts of the guess that the edge is present, in trials with the edge and without."""

    detections: int
    with_edge: int
    false_alarms: int
    without_edge: int

    def limits(self, *, confidence: float) -> tuple[float, float]:
        """Lower limit of detections, upper limit of false alarms; both with this confidence."""
        each = 1 - (1 - confidence) / 2
        return (
            at_least(self.detections, self.with_edge, confidence=each),
            at_most(self.false_alarms, self.without_edge, confidence=each),
        )

    def epsilon(self, *, delta: float, confidence: float) -> float:
        """Lower bound on epsilon without any assumption."""
        detections, false_alarms = self.limits(confidence=confidence)
        hits = _log_ratio(detections - delta, false_alarms)
        misses = _log_ratio(1 - false_alarms - delta, 1 - detections)
        return max(0.0, hits, misses)

    def mu(self, *, confidence: float) -> float:
        """Lower bound on mu for Gaussian noise.

        Raises:
            InputError: the numbers of trials with and without the edge differ.
        """
        if self.with_edge != self.without_edge:
            raise InputError(
                f"trials: expected as many with the edge as without, got {self.with_edge} and "
                f"{self.without_edge}"
            )
        right = self.detections + self.without_edge - self.false_alarms
        chance = at_least(right, 2 * self.with_edge, confidence=confidence)
        return 2 * NormalDist().inv_cdf(chance) if chance > 0.5 else 0.0


def guesses(with_edge: Scores, without_edge: Scores, *, threshold: float) -> Guesses:
    """Count scores above the threshold, the guess that the edge is present; equal is not above."""
    return Guesses(
        detections=int((with_edge > threshold).sum()),
        with_edge=len(with_edge),
        false_alarms=int((without_edge > threshold).sum()),
        without_edge=len(without_edge),
    )


@dataclass(frozen=True, kw_only=True)
class LowerBounds:
    """Lower bounds that scores support, each with the stated confidence."""

    epsilon: float
    """Epsilon without any assumption."""
    mu: float
    epsilon_if_gaussian: float | None
    """Epsilon that follows from `mu`; None for delta 0, which no Gaussian mechanism has."""
    guesses: Guesses
    """Counts behind `epsilon`."""
    gaussian_guesses: Guesses
    """Counts behind `mu`."""


def lower_bounds(
    with_edge: Scores,
    without_edge: Scores,
    *,
    delta: float,
    confidence: float,
    middle: float | None = None,
    chosen_on: tuple[Scores, Scores] | None = None,
) -> LowerBounds:
    """Bound epsilon from below.

    Args:
        with_edge: (trials,) scores of trials with the edge, independent of each other.
        without_edge: (trials,) scores of trials without it.
        delta: delta of the bound; 0 for pure differential privacy.
        confidence: confidence of each bound.
        middle: best threshold for Gaussian noise if known beforehand, such as 0 for a log
            likelihood ratio; all trials then count for that bound.
        chosen_on: scores of other trials to choose thresholds on; None for the first half.
    """
    first, second = chosen_on, (with_edge, without_edge)
    if first is None:
        halves = [(len(scores) + 1) // 2 for scores in second]
        first = with_edge[: halves[0]], without_edge[: halves[1]]
        second = with_edge[halves[0] :], without_edge[halves[1] :]
    thresholds = _thresholds(*first)

    def epsilon_at(threshold: float) -> float:
        return guesses(*first, threshold=threshold).epsilon(delta=delta, confidence=confidence)

    def mu_at(threshold: float) -> float:
        return guesses(*first, threshold=threshold).mu(confidence=confidence)

    plain = guesses(*second, threshold=max(thresholds, key=epsilon_at))
    if middle is None:
        gaussian = guesses(*second, threshold=max(thresholds, key=mu_at))
    else:
        gaussian = guesses(with_edge, without_edge, threshold=middle)
    mu = gaussian.mu(confidence=confidence)
    return LowerBounds(
        epsilon=plain.epsilon(delta=delta, confidence=confidence),
        mu=mu,
        epsilon_if_gaussian=epsilon_at_least(mu=mu, delta=delta) if delta > 0 else None,
        guesses=plain,
        gaussian_guesses=gaussian,
    )


def epsilon_at_least(*, mu: float, delta: float) -> float:
    """Convert mu to epsilon at delta, rounded down."""
    return epsilon_of(mu=mu, delta=delta) * (1 - CONVERSION_ERROR)


def _thresholds(with_edge: Scores, without_edge: Scores) -> list[float]:
    ordered = np.unique(np.concatenate([with_edge, without_edge]))
    places = np.unique(np.linspace(0, len(ordered) - 1, THRESHOLDS).round().astype(int))
    between = (ordered[places[:-1]] + ordered[places[:-1] + 1]) / 2 if len(places) > 1 else ordered
    return [float(value) for value in between]


def _log_ratio(above: float, below: float) -> float:
    if above <= 0:
        return -math.inf
    return math.inf if below <= 0 else math.log(above / below)
