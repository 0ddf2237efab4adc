"""Points are drawn where their numbers are, on one scale for both axes."""

import re

import numpy as np
import pytest

from vesper.report.charts import MOST_NODES, numbers_chart, ranks_chart
from vesper.report.contents import NumberEvaluation

POINT = r'<circle cx="([\d.]+)" cy="([\d.]+)" r="2" class="point validation cloud"'


def test_equal_numbers_lie_on_the_line() -> None:
    chart = numbers_chart(np.array([0.0, 5.0, 10.0]), np.array([0.0, 5.0, 10.0]))
    line = re.search(r'x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)" class="base', chart)
    points = [tuple(map(float, each)) for each in re.findall(POINT, chart)]
    assert line is not None
    assert [*points[0], *points[-1]] == [float(each) for each in line.groups()]
    assert points[1] == pytest.approx(np.mean([points[0], points[2]], axis=0), abs=0.1)


def test_only_some_of_many_points_are_drawn() -> None:
    rng = np.random.default_rng(0)
    labels, predicted = rng.normal(size=(2, 5000))
    assert len(re.findall(POINT, numbers_chart(labels, predicted))) == MOST_NODES
    assert len(re.findall(POINT, numbers_chart(labels[:7], np.zeros(7)))) == 7


def test_ranks_do_not_depend_on_the_scale_of_numbers() -> None:
    labels = np.array([1.0, 10.0, 1e6, 3.0])
    assert ranks_chart(labels, np.log(labels)) == ranks_chart(labels, labels)
    assert ranks_chart(labels, labels) != ranks_chart(labels, -labels)


def test_the_metric_is_chosen_by_name() -> None:
    labels, predicted = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 9.0])
    evaluation = {
        name: NumberEvaluation(split="test", labels=labels, predicted=predicted, name=name).metric
        for name in ("r2", "spearman")
    }
    assert evaluation == pytest.approx({"r2": 100 * (1 - 36 / 2), "spearman": 100.0})


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e7, 1e9, 1e16, 1e200])
def test_numbers_of_any_size_fill_the_chart(scale: float) -> None:
    labels, predicted = np.random.default_rng(0).normal(size=(2, 50))
    chart, usual = (numbers_chart(size * labels, size * predicted) for size in (scale, 1.0))
    places, expected = (np.array(re.findall(POINT, each), dtype=float) for each in (chart, usual))
    assert np.ptp(places, axis=0) == pytest.approx(np.ptp(expected, axis=0), rel=0.5)
    assert len(chart) < 1.2 * len(usual)


def test_equal_numbers_share_one_point() -> None:
    places = re.findall(POINT, numbers_chart(np.full(3, 1e9), np.full(3, 1e9)))
    assert len(set(places)) == 1
    assert "nan" not in numbers_chart(np.zeros(3), np.zeros(3))
