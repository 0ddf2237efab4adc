"""Charts draw the numbers they are given."""

import re

import numpy as np
import pytest

from vesper.drawing.svg import Frame, round_ticks
from vesper.model.evaluation import roc_auc
from vesper.report.charts import MOST_POINTS, confusion_chart, roc_points, stage_chart


def test_the_area_under_the_drawn_curve_is_the_metric() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=3000)
    scores = np.round(rng.normal(size=3000) + labels, 2)  # with ties
    false, true = roc_points(scores, labels)
    assert len(false) <= MOST_POINTS
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(true, false) == pytest.approx(roc_auc(scores, labels), abs=1e-3)


def test_better_stages_are_drawn_higher() -> None:
    stages = [{"validation": 60.0, "test": 59.0}, {"validation": 80.0, "test": 81.0}]
    chart = stage_chart(stages, chosen=1, metric="Accuracy")
    points = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="3.5" class="point (\w+)"', chart)
    assert [name for _, _, name in points] == ["validation", "validation", "test", "test"]
    heights = [float(y) for _, y, _ in points]
    assert heights[0] > heights[1]
    assert heights[2] > heights[3]
    ring = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="7.5"', chart)
    assert ring is not None
    assert ring.groups() == points[1][:2]


def test_confusion_matrix() -> None:
    scores = np.eye(3)[[0, 0, 1, 2]]
    chart = confusion_chart(scores, np.array([0, 0, 0, 2]), ("a", "b", "c"))
    assert re.findall(r">(\d+)</text>", chart) == ["67", "0", "0", "100"], "b has no node, no row"


def test_ticks_enclose_their_range() -> None:
    for low, high in [(0.0, 100.0), (88.1, 88.4), (50.0, 51.7), (3.0, 99.0)]:
        ticks = round_ticks(low, high)
        assert ticks[0] <= low <= high <= ticks[-1]
        assert 3 <= len(ticks) <= 7
    frame = Frame(x_range=(0, 1), y_range=(0, 1))
    assert frame.y(0) > frame.y(1)
    assert frame.x(0) < frame.x(1)
