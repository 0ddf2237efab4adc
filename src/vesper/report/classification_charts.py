"""Charts of classifications: ROC and precision-recall curves, and the confusion matrix."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vesper.drawing.svg import HEIGHT, WIDTH, Frame, band, drawing, line, path, rows_of, text
from vesper.report.threshold_curves import GRID, CurveWithIntervals

MOST_CLASSES = 10
"""Classes in a confusion matrix; if there are more, the most frequent."""
TICKS = (0, 25, 50, 75, 100)


def roc_chart(curve: CurveWithIntervals) -> str:
    """Draw true over false positives; on the dashed line, scores say nothing."""
    return _square_chart(
        curve, (0.0, 100.0), across="false positives, %", up="true positives, %", title="ROC curve"
    )


def precision_recall_chart(curve: CurveWithIntervals, *, share: float) -> str:
    """Draw precision over recall; on the dashed line, scores say nothing.

    Args:
        curve: to draw.
        share: of positive nodes among all.
    """
    level = 100 * share
    return _square_chart(
        curve, (level, level), across="recall, %", up="precision, %", title="Precision-recall curve"
    )


def _square_chart(
    curve: CurveWithIntervals, guess: tuple[float, float], *, across: str, up: str, title: str
) -> str:
    frame = Frame(x_range=(0, 100), y_range=(0, 100), top=28)
    shapes = rows_of(frame, TICKS, form="g")
    upper, lower = (
        [(frame.x(100 * x), frame.y(100 * y)) for x, y in zip(GRID, ends, strict=True)]
        for ends in (curve.high, curve.low)
    )
    shapes.append(band(upper, lower, style="interval"))
    ends = (frame.x(0), frame.y(guess[0]), frame.x(100), frame.y(guess[1]))
    shapes.append(line(*ends, style="baseline"))
    points = zip(curve.across, curve.up, strict=True)
    drawn = [(frame.x(100 * float(x)), frame.y(100 * float(y))) for x, y in points]
    shapes.append(path(drawn, style="curve validation"))
    shapes += [text(frame.x(tick), HEIGHT - 24, str(tick)) for tick in TICKS]
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, across))
    shapes.append(text(8, 12, up, anchor="start"))
    return drawing(shapes, title=title)


def confusion_counts(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the nodes of each true class (row) by predicted class (column).

    >>> confusion_counts(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0])).tolist()
    [[1, 1], [0, 0]]
    """
    classes = scores.shape[1]
    pairs = labels * classes + scores.argmax(axis=1)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


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
