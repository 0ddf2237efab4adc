"""Area, interval and rate against scikit-learn, brute force and repeated draws."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vesper.attack.roc import roc_of, tpr_at
from vesper.errors import InputError


def test_the_area_is_that_of_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    positives = rng.integers(0, 6, size=80).astype(float) + 1
    negatives = rng.integers(0, 6, size=50).astype(float)
    wanted = roc_auc_score(np.repeat([1, 0], [80, 50]), np.concatenate([positives, negatives]))
    assert roc_of(positives, negatives).auc == pytest.approx(wanted)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Normal scores one apart: the true area is Phi(1 / sqrt 2) = 0.7602."""
    inside = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        found = roc_of(rng.standard_normal(60) + 1, rng.standard_normal(90))
        inside += found.ci_low <= 0.760249 <= found.ci_high
    assert 0.915 < inside / 400 < 0.985


def test_the_rate_at_few_false_positives() -> None:
    negatives = np.arange(1000.0)
    assert tpr_at(np.array([998.5, 999.5]), negatives, fpr=0.001) == 1.0  # one may pass
    assert tpr_at(np.array([997.5, 999.5]), negatives, fpr=0.001) == 0.5
    assert tpr_at(np.array([998.5, 999.5]), negatives, fpr=0.0) == 0.5
    assert tpr_at(np.array([998.5, 999.5]), negatives[:999], fpr=0.001) == 1.0  # none of 999
    assert tpr_at(np.zeros(3), np.zeros(2000), fpr=0.001) == 0.0  # a tie is no hit


def test_scores_that_say_nothing() -> None:
    found = roc_of(np.zeros(10), np.zeros(10))
    assert (found.auc, found.tpr) == (0.5, 0.0)


def test_one_kind_alone_is_refused() -> None:
    with pytest.raises(InputError, match="got 0 and 3"):
        roc_of(np.zeros(0), np.zeros(3))
