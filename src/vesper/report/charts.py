"""Charts of a report: metric per stage, ROC curve, confusion matrix, predicted over true values."""

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

MOST_CLASSES = 10
"""Classes in a confusion matrix; if there are more, the most frequent."""

MOST_POINTS = 400
"""Most points of a ROC curve."""


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


def roc_chart(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> str:
    """Draw true against false positives, over all thresholds of score_1 - score_0."""
    false, true = roc_points(scores[:, 1] - scores[:, 0], labels)
    frame = Frame(x_range=(0, 100), y_range=(0, 100), top=28)
    shapes = rows_of(frame, [0, 25, 50, 75, 100], form="g")
    shapes.append(line(frame.x(0), frame.y(0), frame.x(100), frame.y(100), style="baseline"))
    curve = [(frame.x(100 * f), frame.y(100 * t)) for f, t in zip(false, true, strict=True)]
    shapes.append(path(curve, style="curve validation"))
    shapes += [text(frame.x(v), HEIGHT - 24, str(v)) for v in (0, 25, 50, 75, 100)]
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, "false positives, %"))
    shapes.append(text(8, 12, "true positives, %", anchor="start"))
    return drawing(shapes, title="ROC curve")


def roc_points(
    scores: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """False and true positive rates at falling thresholds, ties together; at most `MOST_POINTS`.

    >>> false, true = roc_points(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # last of each tie
    true = np.append(0.0, np.cumsum(labels[order] == 1)[last])
    false = np.append(0.0, np.cumsum(labels[order] != 1)[last])
    thin = np.unique(np.linspace(0, len(true) - 1, min(len(true), MOST_POINTS)).astype(int))
    return false[thin] / max(false[-1], 1), true[thin] / max(true[-1], 1)


def confusion_chart(
    scores: NDArray[np.float64], labels: NDArray[np.int64], classes: Sequence[str]
) -> str:
    """Draw the share of each true class (row) predicted as each class (column), in percent."""
    counts = np.bincount(labels, minlength=len(classes))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])
    frequent = frequent[counts[frequent] > 0]
    predicted = scores.argmax(axis=1)
    left, top, bottom = 84.0, 8.0, 42.0
    wide, high = (WIDTH - left - 8) / len(frequent), (HEIGHT - top - bottom) / len(frequent)
    shapes = []
    for row, truth in enumerate(frequent):
        at = top + row * high
        shapes.append(text(left - 6, at + high / 2 + 4, _short(classes[truth], 12), anchor="end"))
        for column, guess in enumerate(frequent):
            share = 100 * float((predicted[labels == truth] == guess).mean())
            x = left + column * wide
            shapes.append(
                f'<rect x="{x:.1f}" y="{at:.1f}" width="{wide - 1.5:.1f}" '
                f'height="{high - 1.5:.1f}" rx="2" class="cell" '
                f'fill-opacity="{0.06 + 0.94 * share / 100:.3f}"/>'
            )
            strong = "tick strong" if share > 50 else "tick"
            shapes.append(text(x + wide / 2 - 1, at + high / 2 + 4, f"{share:.0f}", style=strong))
    for column, guess in enumerate(frequent):
        name = _short(classes[guess], max(2, int(wide / 7)))
        shapes.append(text(left + column * wide + wide / 2, HEIGHT - 26, name))
    shapes.append(text((left + WIDTH - 8) / 2, HEIGHT - 6, "predicted class"))
    return drawing(shapes, title="Confusion matrix")


def _short(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "\u2026"


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
