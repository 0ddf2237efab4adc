"""Epsilon-utility curves: only of runs that can be compared, on whole axes."""

import re
from typing import Any

from vesper.report.tradeoff_chart import Tradeoff, tradeoff_chart, tradeoff_section


def point(**changes: Any) -> Tradeoff:
    fields = {
        "method": "certified",
        "metric": "roc_auc",
        "split": "test",
        "guarantee": "certified",
        "epsilon": 4.0,
        "value": 80.0,
    }
    return Tradeoff(**{**fields, **changes})


def test_runs_without_an_epsilon_are_levels() -> None:
    section = tradeoff_section(
        [
            point(),
            point(epsilon=1.0, value=70.0),
            point(method="mlp", guarantee="no edge is read", epsilon=0.0, value=60.0),
            point(method="gin", guarantee="none", epsilon=None, value=90.0),
        ]
    )
    assert section.count('class="level') == 2
    assert section.count("<circle") == 2
    assert section.count("<polyline") == 1


def test_equal_epsilons_are_joined_by_their_mean() -> None:
    chart = tradeoff_chart([point(value=70.0), point(value=90.0), point(epsilon=8.0, value=80.0)])
    (line,) = re.findall(r'<polyline points="([^"]+)"', chart)
    heights = {pair.split(",")[1] for pair in line.split()}
    assert len(heights) == 1, "the mean of 70 and 90 is as high as 80"
    assert chart.count("<circle") == 3


def test_the_axis_begins_at_zero() -> None:
    labels = re.findall(r">([^<>]+)</text>", tradeoff_chart([point(), point(epsilon=8.0)]))
    assert {"0", "100", "4", "8", "epsilon"} <= set(labels)


def test_runs_on_different_data_share_no_curve() -> None:
    apart = tradeoff_section([point(data="a"), point(data="b", epsilon=8.0)])
    assert "<polyline" not in apart
    assert "certified, certified, b" in apart
    together = tradeoff_section([point(data="a"), point(data="", epsilon=8.0)])
    assert together.count("<polyline") == 1
    assert "certified, certified, a" not in together


def test_what_cannot_be_compared_is_not_drawn() -> None:
    assert tradeoff_section([point()]) == ""
    assert tradeoff_section([point(), point(metric="accuracy")]) == ""
    assert tradeoff_section([point(epsilon=None), point(epsilon=None)]) == ""
