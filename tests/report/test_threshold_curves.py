"""Curves have the area of the metric, and intervals that cover it as often as they say."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.model.evaluation import roc_auc
from vesper.report.threshold_curves import (
    GRID,
    MOST_POINTS,
    precision_recall_curve,
    roc_curve,
    share_interval,
)


def scored(rng: np.random.Generator, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores with ties of nodes of two classes; the area under their ROC curve is 0.76."""
    labels = rng.integers(0, 2, size=nodes)
    return np.round(rng.normal(size=nodes) + labels, 2), labels


def test_the_area_is_the_metric_although_few_points_are_drawn() -> None:
    scores, labels = scored(np.random.default_rng(0), 3000)
    curve = roc_curve(scores, labels)
    assert len(curve.across) <= MOST_POINTS
    assert (curve.across[0], curve.up[0], curve.across[-1], curve.up[-1]) == (0, 0, 1, 1)
    assert curve.area == pytest.approx(roc_auc(scores, labels))
    assert np.trapezoid(curve.up, curve.across) == pytest.approx(curve.area, abs=1e-3)


def test_intervals_cover_the_truth() -> None:
    rng, truth = np.random.default_rng(1), 0.7602
    intervals = [roc_curve(*scored(rng, 300)).area_interval for _ in range(40)]
    covered = sum(low <= truth <= high for low, high in intervals)
    assert covered >= 34, "95 % of 40 is 38"
    assert max(high - low for low, high in intervals) < 0.15


def test_the_curve_is_within_its_interval() -> None:
    scores, labels = scored(np.random.default_rng(2), 500)
    curve = roc_curve(scores, labels)
    values = np.interp(GRID, curve.across, curve.up)
    inside = (curve.low - 0.02 <= values) & (values <= curve.high + 0.02)
    assert inside.mean() > 0.95


def test_average_precision() -> None:
    curve = precision_recall_curve(np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 0, 1, 0]))
    assert curve.area == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert curve.across.tolist() == [0, 0.5, 0.5, 1, 1]
    assert curve.up.tolist() == pytest.approx([1, 1, 1 / 2, 2 / 3, 1 / 2])


def test_scores_that_are_all_equal() -> None:
    labels = np.array([0, 1, 1])
    assert roc_curve(np.zeros(3), labels).area == 0.5
    assert precision_recall_curve(np.zeros(3), labels).area == pytest.approx(2 / 3)


def test_the_interval_of_a_share_stays_between_0_and_1() -> None:
    assert share_interval(1.0, 5)[1] == 1.0
    assert share_interval(1.0, 5)[0] == pytest.approx(0.566, abs=1e-3)
    assert share_interval(0.0, 5)[0] == pytest.approx(0.0, abs=1e-9)
