"""Confidence limits for a chance, from how often it came true (Clopper and Pearson 1934).

    at_least = smallest p with  P(Binomial(n, p) >= k) >= 1 - confidence
    at_most  = largest p with   P(Binomial(n, p) <= k) >= 1 - confidence

Each holds with at least the stated confidence, whatever the true chance. Rounding is outwards.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError

HALVINGS = 48


@lru_cache(maxsize=4096)
def at_least(successes: int, trials: int, *, confidence: float) -> float:
    """Lower limit of the chance behind `successes` of `trials`.

    >>> round(at_least(10, 10, confidence=0.95), 4)
    0.7411
    """
    _expect(successes, trials, confidence)
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
    """Upper limit of the chance behind `successes` of `trials`.

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


def _expect(successes: int, trials: int, confidence: float) -> None:
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(f"trials: expected 0 <= {successes} <= {trials} and at least one trial")
    if not 0 < confidence < 1:
        raise InputError(f"confidence: expected a number between 0 and 1, got {confidence:g}")
