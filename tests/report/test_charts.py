"""Charts draw the numbers they are given."""

import re

from vesper.drawing.svg import Frame, round_ticks
from vesper.report.charts import stage_chart


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


def test_the_axis_of_a_metric_is_not_truncated() -> None:
    stages = [{"validation": 80.0}, {"validation": 80.5}]
    labels = re.findall(r">([^<>]+)</text>", stage_chart(stages, chosen=1, metric="Accuracy"))
    assert {"0", "100"} <= set(labels)


def test_ticks_enclose_their_range() -> None:
    for low, high in [(0.0, 100.0), (88.1, 88.4), (50.0, 51.7), (3.0, 99.0)]:
        ticks = round_ticks(low, high)
        assert ticks[0] <= low <= high <= ticks[-1]
        assert 3 <= len(ticks) <= 7
    frame = Frame(x_range=(0, 1), y_range=(0, 1))
    assert frame.y(0) > frame.y(1)
    assert frame.x(0) < frame.x(1)
