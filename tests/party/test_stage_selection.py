"""A later stage is chosen when it is better beyond chance, and only then."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.model.evaluation import evaluate
from vesper.party.stage_selection import StageResult, error_of_difference, select_stage

ROWS = np.arange(400)
LABELS = np.random.default_rng(0).integers(0, 3, 400)
Right = NDArray[np.bool_]


def metric(scores: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    return evaluate(scores, LABELS[rows])


def stage(right: Right) -> StageResult:
    """A stage that is right about these nodes."""
    scores = np.eye(3, dtype=np.float32)[np.where(right, LABELS, (LABELS + 1) % 3)]
    return StageResult(metric=metric(scores.astype(float), ROWS), weights={}, scores=scores)


def test_the_error_is_that_of_paired_differences() -> None:
    rng = np.random.default_rng(1)
    first = rng.random(400) < 0.7
    second = first ^ (rng.random(400) < 0.1)  # a tenth differs
    error = error_of_difference(stage(second), stage(first), ROWS, metric)
    expected = 100 * (second.astype(float) - first).std(ddof=1) / 20
    assert error == pytest.approx(expected, rel=0.35)
    assert error_of_difference(stage(first), stage(first), ROWS, metric) == 0


@pytest.mark.parametrize(("gained", "lost", "chosen"), [(12, 10, 0), (40, 10, 1), (10, 12, 0)])
def test_better_beyond_chance(gained: int, lost: int, chosen: int) -> None:
    first = np.arange(400) < 200
    second = first.copy()
    rng = np.random.default_rng(2)
    second[rng.permutation(200)[:lost]] = False
    second[200 + rng.permutation(200)[:gained]] = True
    assert select_stage([stage(first), stage(second)], ROWS, metric, effective_rows=400) == chosen


def test_the_best_later_stage_is_compared_with_the_first() -> None:
    few, more, most = (np.arange(400) < count for count in (200, 260, 330))
    slightly = np.arange(400) < 262
    assert (
        select_stage([stage(few), stage(more), stage(most)], ROWS, metric, effective_rows=400) == 2
    )
    assert (
        select_stage([stage(few), stage(most), stage(more)], ROWS, metric, effective_rows=400) == 1
    )
    assert (
        select_stage([stage(most), stage(few), stage(more)], ROWS, metric, effective_rows=400) == 0
    )
    assert (
        select_stage([stage(few), stage(most), stage(most)], ROWS, metric, effective_rows=400) == 1
    )
    assert (
        select_stage([stage(few), stage(more), stage(slightly)], ROWS, metric, effective_rows=400)
        == 2
    )
    assert select_stage([stage(few)], ROWS, metric, effective_rows=400) == 0


def test_rare_positives_do_not_hide_a_good_stage() -> None:
    """Without the group that holds the only positive there is no ROC curve."""
    labels = np.zeros(60, dtype=np.int64)
    labels[7] = 1
    rows = np.arange(60)

    def area(scores: NDArray[np.float64], some: NDArray[np.int64]) -> float:
        return evaluate(scores, labels[some])

    def scored(positive: float) -> StageResult:
        scores = np.column_stack([np.zeros(60), np.linspace(0, 1, 60)]).astype(np.float32)
        scores[7, 1] = positive
        metric = area(scores.astype(float), rows)
        return StageResult(metric=metric, weights={}, scores=scores)

    assert select_stage([scored(0.4), scored(0.99)], rows, area, effective_rows=60) == 1
    assert error_of_difference(scored(0.4), scored(0.99), rows, area) < 100


def test_one_node_or_a_missing_metric_selects_the_first_stage() -> None:
    good, bad = stage(np.ones(400, dtype=bool)), stage(np.zeros(400, dtype=bool))
    assert select_stage([bad, good], ROWS[:1], metric, effective_rows=1) == 0
    none = StageResult(metric=-math.inf, weights={}, scores=np.zeros((0, 0), dtype=np.float32))
    assert select_stage([none, none], ROWS, metric, effective_rows=400) == 0


def test_few_effective_rows_require_a_larger_lead() -> None:
    first = np.arange(400) < 200
    second = first.copy()
    rng = np.random.default_rng(2)
    second[rng.permutation(200)[:10]] = False
    second[200 + rng.permutation(200)[:25]] = True  # ahead by 2.5 errors
    both = [stage(first), stage(second)]
    assert [select_stage(both, ROWS, metric, effective_rows=n) for n in (400, 14, 3, 0)] == [
        1,
        1,
        0,
        0,
    ]
