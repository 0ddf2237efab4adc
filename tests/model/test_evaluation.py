import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vesper.model.evaluation import evaluate, metric_name, roc_auc


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_auc_counts_pairs(rows: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in rows], dtype=np.float64)
    labels = np.array([label for _, label in rows], dtype=np.int64)
    positives, negatives = scores[labels == 1], scores[labels == 0]
    if len(positives) == 0 or len(negatives) == 0:
        assert math.isnan(roc_auc(scores, labels))
        return
    wins = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    assert math.isclose(roc_auc(scores, labels), wins / (len(positives) * len(negatives)))


def test_the_metric_follows_the_number_of_classes() -> None:
    assert metric_name(2) == "roc_auc"
    assert metric_name(3) == "accuracy"
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5]])
    assert evaluate(scores, np.array([0, 2])) == 50.0
    assert evaluate(scores[:, :2], np.array([0, 1])) == 100.0
