"""Groups of degrees, and public JSON names."""

import numpy as np

from vesper.attack.attack_result import AttackResult, by_degree
from vesper.attack.roc import roc_of


def test_groups_split_by_degree_and_small_ones_are_left_out() -> None:
    degrees = np.array([1] * 20 + [10] * 20 + [100] * 4)
    is_positive = np.tile([True, False], 22)
    scores = np.where(degrees == 10, is_positive.astype(float), 0.0)
    groups = by_degree(scores, is_positive, degrees)
    assert [(each.low, each.high) for each in groups] == [(0, 3), (4, 15)]
    assert [each.roc.auc for each in groups] == [0.5, 1.0]


def test_names_in_json() -> None:
    facts = AttackResult(
        attack="edge-likelihood",
        method="certified",
        plan="certified",
        epsilon=4.0,
        roc=roc_of(np.ones(4), np.zeros(4)),
        by_degree=(),
        knows="all",
        seed=0,
    ).as_json()
    assert {"auc", "tpr_at_0.1pct_fpr", "ci_low", "ci_high", "by_degree"} <= set(facts)
    assert facts["auc"] == 1.0
