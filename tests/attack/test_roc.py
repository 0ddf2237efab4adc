"""AUC, interval and true-positive rate against scikit-learn and repeated draws."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vesper.attack.roc import roc_of, tpr_at
from vesper.errors import InputError


def test_the_area_is_that_of_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    positives = rng.integers(0, 6, size=80).astype(float) + 1
    negatives = rng.integers(0, 6, size=50).astype(float)
    expected = roc_auc_score(np.repeat([1, 0], [80, 50]), np.concatenate([positives, negatives]))
    assert roc_of(positives, negatives).auc == pytest.approx(expected)


def test_the_interval_covers_the_truth_as_often_as_stated() -> None:
    """Normal scores with means one apart: the true area is Phi(1 / sqrt 2) = 0.7602."""
    inside = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        roc = roc_of(rng.standard_normal(60) + 1, rng.standard_normal(90))
        inside += roc.ci_low <= 0.760249 <= roc.ci_high
    assert 0.915 < inside / 400 < 0.985


def test_the_rate_at_a_low_false_positive_rate() -> None:
    negatives = np.arange(1000.0)
    assert tpr_at(np.array([998.5, 999.5]), negatives, fpr=0.001) == 1.0  # one may pass
    assert tpr_at(np.array([997.5, 999.5]), negatives, fpr=0.001) == 0.5
    assert tpr_at(np.array([998.5, 999.5]), negatives, fpr=0.0) == 0.5
    assert tpr_at(np.array([998.5, 999.5]), negatives[:999], fpr=0.001) == 1.0  # none of 999
    assert tpr_at(np.zeros(3), np.zeros(2000), fpr=0.001) == 0.0  # a tie does not count


def test_constant_scores_have_an_area_of_one_half() -> None:
    roc = roc_of(np.zeros(10), np.zeros(10))
    assert (roc.auc, roc.tpr) == (0.5, 0.0)


def test_positives_or_negatives_alone_are_refused() -> None:
    with pytest.raises(InputError, match="got 0 and 3"):
        roc_of(np.zeros(0), np.zeros(3))
