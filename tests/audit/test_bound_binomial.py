"""Confidence limits against scipy, and against their stated confidence."""

import numpy as np
import pytest
from scipy import stats

from vesper.audit.bound import at_least, at_most
from vesper.errors import InputError


@pytest.mark.parametrize("trials", [1, 7, 100, 3000])
@pytest.mark.parametrize("confidence", [0.9, 0.975, 0.999])
def test_limits_equal_those_of_clopper_and_pearson(trials: int, confidence: float) -> None:
    for successes in sorted({0, 1, trials // 3, trials - 1, trials}):
        low = stats.beta.ppf(1 - confidence, successes, trials - successes + 1)
        high = stats.beta.ppf(confidence, successes + 1, trials - successes)
        expected = (0.0 if successes == 0 else low, 1.0 if successes == trials else high)
        limits = (
            at_least(successes, trials, confidence=confidence),
            at_most(successes, trials, confidence=confidence),
        )
        assert limits == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("chance", [0.001, 0.2, 0.5, 0.97])
def test_limits_are_wrong_no_more_often_than_stated(chance: float) -> None:
    trials, confidence = 60, 0.9
    wrong_below = wrong_above = 0.0
    for successes in range(trials + 1):
        weight = float(stats.binom.pmf(successes, trials, chance))
        wrong_below += weight * (at_least(successes, trials, confidence=confidence) > chance)
        wrong_above += weight * (at_most(successes, trials, confidence=confidence) < chance)
    assert max(wrong_below, wrong_above) <= 1 - confidence + 1e-12


def test_more_successes_never_lower_a_limit() -> None:
    limits = [at_least(k, 50, confidence=0.95) for k in range(51)]
    assert np.all(np.diff(limits) > 0)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (-1, 5), (6, 5)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(InputError, match="trials"):
        at_least(successes, trials, confidence=0.95)


def test_a_confidence_of_one_is_refused() -> None:
    with pytest.raises(InputError, match="confidence"):
        at_least(1, 2, confidence=1.0)
