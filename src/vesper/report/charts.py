"""Charts of a report: metric per stage, and predicted over true values."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vesper.drawing.svg import (
    HEIGHT,
    WIDTH,
    Frame,
    dot,
    drawing,
    line,
    path,
    percent_ticks,
    round_ticks,
    rows_of,
    text,
)
from vesper.model.regression import mean_ranks


def stage_chart(stages: Sequence[Mapping[str, float]], *, chosen: int, metric: str) -> str:
    """Draw the metric of each stage; the dashed line is stage 0, which reads no edge."""
    lines = [name for name in ("validation", "test") if all(name in stage for stage in stages)]
    ticks = percent_ticks(stage[name] for stage in stages for name in lines)
    frame = Frame(x_range=(-0.35, len(stages) - 0.65), y_range=(ticks[0], ticks[-1]), top=24)
    shapes = rows_of(frame, ticks, form="g")
    floor = frame.y(stages[0]["validation"])
    shapes.append(line(frame.left, floor, WIDTH - frame.right, floor, style="baseline"))
    for name in lines:
        points = [(frame.x(k), frame.y(stage[name])) for k, stage in enumerate(stages)]
        shapes.append(path(points, style=f"curve {name}"))
        shapes += [dot(x, y, radius=3.5, style=f"point {name}") for x, y in points]
    shapes += _values(frame, [stage["validation"] for stage in stages])
    x, y = frame.x(chosen), frame.y(stages[chosen]["validation"])
    shapes.append(dot(x, y, radius=7.5, style="ring"))
    for k in range(len(stages)):
        words = "features only" if k == 0 else f"{k} release{'s' if k > 1 else ''}"
        shapes.append(text(frame.x(k), HEIGHT - 22, words))
    return drawing(shapes, title=f"{metric} of each stage")


def _values(frame: Frame, heights: Sequence[float]) -> list[str]:
    """Write numbers next to points, on the side that the curve leaves free."""
    shapes = []
    for k, height in enumerate(heights):
        falls = k > 0 and heights[k - 1] > height
        rises = k + 1 < len(heights) and heights[k + 1] > height
        across, down, anchor = 0, -12, "middle"
        if falls and rises:
            down = 20
        elif falls or rises:
            across, down, anchor = (9, -6, "start") if falls else (-9, -6, "end")
        x, y = frame.x(k) + across, frame.y(height) + down
        shapes.append(text(x, y, f"{height:.1f}", style="tick value", anchor=anchor))
    return shapes


MOST_NODES = 600
"""Most points of a scatter chart; of more nodes, this many at equal steps in label order."""
SMALLEST_RANGE = 1e-6
"""Smallest range of an axis, relative to its largest number."""
Floats = NDArray[np.float64]


def numbers_chart(labels: Floats, predicted: Floats) -> str:
    """Draw predicted values over true values."""
    return _scatter_chart(labels, predicted, across="true value", up="predicted value")


def ranks_chart(labels: Floats, predicted: Floats) -> str:
    """Draw predicted ranks over true ranks, in percent of all nodes."""
    ranks = (100 * mean_ranks(values) / len(values) for values in (labels, predicted))
    return _scatter_chart(*ranks, across="true rank, %", up="predicted rank, %")


def _scatter_chart(labels: Floats, predicted: Floats, *, across: str, up: str) -> str:
    """Draw both axes to one scale, so that predictions too close to the mean show."""
    low, high = (float(end([end(labels), end(predicted)])) for end in (np.min, np.max))
    ticks = round_ticks(low, high, least=SMALLEST_RANGE * max(abs(low), abs(high)) or 1.0)
    ends = (ticks[0], ticks[-1])
    frame = Frame(x_range=ends, y_range=ends, top=28, left=56, right=26)
    shapes = rows_of(frame, ticks, form="g")
    shapes.append(line(*(at(end) for end in ends for at in (frame.x, frame.y)), style="baseline"))
    shapes += [
        dot(frame.x(label), frame.y(guess), radius=2, style="point validation cloud")
        for label, guess in _sample(labels, predicted)
    ]
    shapes += [text(frame.x(tick), HEIGHT - 24, f"{tick:g}") for tick in ticks]
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, across))
    shapes.append(text(8, 12, up, anchor="start"))
    return drawing(shapes, title=f"{up} over {across}")


def _sample(labels: Floats, predicted: Floats) -> list[tuple[float, float]]:
    order = np.argsort(labels, kind="stable")
    steps = np.linspace(0, len(order) - 1, min(len(order), MOST_NODES)).astype(np.int64)
    chosen = order[steps]
    return list(zip(labels[chosen].tolist(), predicted[chosen].tolist(), strict=True))
