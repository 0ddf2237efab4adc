"""Selection of the finished stage that becomes the model, at the label party.

    best    = the later stage with the best metric on validation nodes
    chosen  = best where   metric of best - metric of stage 0  >  margin error,   else stage 0
    margin  = MARGIN (1 + SMALL_SAMPLE_ROWS / effective rows)
    error^2 = (g - 1) / g  sum over groups of (difference without the group - their mean)^2

Each stage is the best of many epochs on few nodes, which flatters one whose releases contain
nothing but noise. So stage 0, which reads no edge, stays unless a later one is better beyond
chance. The error of the difference is a jackknife over g groups of validation nodes: both stages
are evaluated on the same nodes, so most of the chance in either cancels in their difference. If few
rows determine the metric (effective rows), as with an area under the ROC curve of six positives,
the best of many epochs is flattered most, and the error itself is hardly known: then a larger lead
is required.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

MARGIN = 0.75
"""Standard errors by which a later stage must lead (docs/decisions/0016)."""
SMALL_SAMPLE_ROWS = 10.0
"""Effective rows at which the lead must be twice as large (docs/decisions/0018)."""
GROUPS = 20

Scores = NDArray[np.float32]
RowIndices = NDArray[np.int64]
Evaluate = Callable[[NDArray[np.float64], RowIndices], float]


@dataclass(frozen=True, eq=False, kw_only=True)
class StageResult:
    """A finished stage at its best epoch."""

    metric: float
    weights: dict[str, Tensor]
    scores: Scores  # (num_val, outputs)


def select_stage(
    stage_results: Sequence[StageResult],
    rows: RowIndices,
    evaluate: Evaluate,
    *,
    effective_rows: int,
) -> int:
    """Choose a stage by validation.

    Args:
        stage_results: results of the stages, in order.
        rows: the rows of all scores.
        evaluate: returns the metric of scores of some rows; larger is better.
        effective_rows: how many of these rows determine the metric.
    """
    if len(stage_results) == 1:
        return 0
    first, metrics = stage_results[0], [each.metric for each in stage_results]
    best = metrics.index(max(metrics[1:]), 1)
    lead = metrics[best] - first.metric
    if not lead > 0:  # false for NaN as well
        return 0
    margin = MARGIN * (1 + SMALL_SAMPLE_ROWS / max(effective_rows, 1))
    error = error_of_difference(stage_results[best], first, rows, evaluate)
    return best if lead > margin * error else 0


def error_of_difference(
    later: StageResult, first: StageResult, rows: RowIndices, evaluate: Evaluate
) -> float:
    """Standard error of the difference between two metrics; infinite with too few nodes."""
    groups = min(GROUPS, len(rows))
    if groups < 2:
        return float("inf")
    # Random groups: rows may be sorted.
    group_of = np.random.default_rng(0).permutation(len(rows)) % groups
    differences = np.empty(groups)  # without one group each
    for group in range(groups):
        rest = group_of != group
        metrics = [
            evaluate(side.scores[rest].astype(np.float64), rows[rest]) for side in (later, first)
        ]
        differences[group] = metrics[0] - metrics[1]
    # A group may contain all positives; without them there is no ROC curve.
    finite_differences = differences[np.isfinite(differences)]
    if 2 * len(finite_differences) < groups:
        return float("inf")
    share = (groups - 1) / len(finite_differences)
    return float(np.sqrt(share * np.square(finite_differences - finite_differences.mean()).sum()))
