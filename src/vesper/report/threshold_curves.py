"""ROC and precision-recall curves of two classes, with 95 % intervals at each point.

    threshold t predicts the positive class where score >= t
    true(t), false(t)    positives and negatives at or above t
    ROC                  true / positives      over  false / negatives
    precision-recall     true / (true + false) over  true / positives

Intervals are percentiles of a stratified bootstrap: nodes of each class are drawn again with
replacement. Only how many fall between two thresholds matters, so it costs the same for a thousand
nodes as for a billion.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_POINTS = 400
"""Most points of a curve."""
RESAMPLES = 400
INTERVAL = (2.5, 97.5)
"""Percentiles at both ends of an interval."""
GRID = np.linspace(0.0, 1.0, 101)
"""Where the ends of intervals are drawn."""


@dataclass(frozen=True, kw_only=True)
class CurveWithIntervals:
    """A curve in the unit square, with its interval at each point of `GRID`."""

    across: Floats
    up: Floats
    low: Floats
    high: Floats
    area: float
    """Area under the curve: ROC AUC, or average precision."""
    area_interval: tuple[float, float]


def threshold_counts(scores: Floats, labels: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Count false and true positives at falling thresholds, from none; ties count together.

    >>> false, true = threshold_counts(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0])
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # last of each tie
    true = np.append(0.0, np.cumsum(labels[order] == 1)[last])
    false = np.append(0.0, np.cumsum(labels[order] != 1)[last])
    return false, true


def roc_curve(scores: Floats, labels: NDArray[np.int64]) -> CurveWithIntervals:
    """Return true over false positive rates; both classes must have nodes."""
    return _curve(scores, labels, _roc)


def precision_recall_curve(scores: Floats, labels: NDArray[np.int64]) -> CurveWithIntervals:
    """Return precision over recall; both classes must have nodes."""
    return _curve(scores, labels, _precision_recall)


Points = tuple[Floats, Floats, float]
"""Horizontal and vertical positions of a curve, and the area under it."""


def _roc(false: Floats, true: Floats) -> Points:
    across, up = false / false[-1], true / true[-1]
    return across, up, float(np.trapezoid(up, across))


def _precision_recall(false: Floats, true: Floats) -> Points:
    """Area is the average precision: each step of recall counts with the precision it ends at."""
    recall, found = true / true[-1], false + true
    precision = np.divide(true, found, out=np.ones_like(true), where=found > 0)
    area = float(np.sum(np.diff(recall) * precision[1:]))
    first = int(np.argmax(found > 0))  # precision is not defined before
    return np.append(0.0, recall[first:]), np.append(precision[first], precision[first:]), area


def _curve(
    scores: Floats, labels: NDArray[np.int64], points_of: Callable[[Floats, Floats], Points]
) -> CurveWithIntervals:
    false, true = threshold_counts(scores, labels)
    _, _, area = points_of(false, true)
    thin = np.unique(np.linspace(0, len(true) - 1, min(len(true), MOST_POINTS)).astype(int))
    false, true = false[thin], true[thin]
    across, up, thin_area = points_of(false, true)
    rng = np.random.default_rng(0)  # the same page for the same run
    drawn = [points_of(_again(false, rng), _again(true, rng)) for _ in range(RESAMPLES)]
    low, high = np.percentile([np.interp(GRID, x, y) for x, y, _ in drawn], INTERVAL, axis=0)
    ends = np.percentile([each for _, _, each in drawn], INTERVAL) + (area - thin_area)
    below, above = np.clip(ends, 0.0, 1.0).tolist()
    return CurveWithIntervals(
        across=across, up=up, low=low, high=high, area=area, area_interval=(below, above)
    )


def _again(counts: Floats, rng: np.random.Generator) -> Floats:
    """Draw as many nodes again with replacement; count them at each threshold."""
    total = counts[-1]
    drawn = rng.multinomial(int(total), np.diff(counts) / total)
    return np.append(0.0, np.cumsum(drawn))


def share_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of `count` nodes, by Wilson's formula.

    >>> [round(end, 3) for end in share_interval(0.8, 100)]
    [0.711, 0.867]
    """
    z = 1.959964
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count)
    half *= (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return max(centre - half, 0.0), min(centre + half, 1.0)
