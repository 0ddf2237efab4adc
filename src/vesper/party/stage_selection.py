"""Finished stages at the label party, and which of them becomes the model.

    best    = the later stage with the best metric on validation nodes
    chosen  = best where   metric of best - metric of stage 0  >  margin error,   else stage 0
    margin  = MARGIN (1 + FLATTERY / telling)      telling: rows that the metric rests on
    error^2 = (g - 1) / g  sum over groups of (difference without the group - their mean)^2

Each stage has kept the best of many epochs on few nodes, which flatters one that has heard nothing
but noise. So the first stage, which has heard nobody, stays unless a later one is better beyond
chance. The error of the difference is a jackknife over g groups of validation nodes: both stages
are judged by the same nodes, so most of what is chance in either is not in their difference. Where
the metric rests on a few rows, as an area under the ROC curve does on six positives, the best of
many epochs is flattered most, and the error itself is hardly known: then more is asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

MARGIN = 0.75
"""Errors by which a later stage has to be better (docs/decisions/0016)."""
SMALL_SAMPLE_ROWS = 10.0
"""Telling rows at which it has to be twice as many (docs/decisions/0018)."""
GROUPS = 20

Scores = NDArray[np.float32]
RowIndices = NDArray[np.int64]
Evaluate = Callable[[NDArray[np.float64], RowIndices], float]


@dataclass(frozen=True, eq=False, kw_only=True)
class StageResult:
    """A stage at its best epoch."""

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
    """Choose by validation.

    Args:
        stage_results: in order.
        rows: that all scores are of.
        evaluate: the metric of scores of some rows; more is better.
        effective_rows: of these rows, those that the metric rests on.
    """
    if len(stage_results) == 1:
        return 0
    first, metrics = stage_results[0], [each.metric for each in stage_results]
    best = metrics.index(max(metrics[1:]), 1)
    lead = metrics[best] - first.metric
    if not lead > 0:  # nor where there is no metric
        return 0
    margin = MARGIN * (1 + SMALL_SAMPLE_ROWS / max(effective_rows, 1))
    error = error_of_difference(stage_results[best], first, rows, evaluate)
    return best if lead > margin * error else 0


def error_of_difference(
    later: StageResult, first: StageResult, rows: RowIndices, evaluate: Evaluate
) -> float:
    """How much of the difference between two metrics is chance; infinite where few nodes tell."""
    groups = min(GROUPS, len(rows))
    if groups < 2:
        return float("inf")
    group_of = np.random.default_rng(0).permutation(len(rows)) % groups  # whatever their order
    without = np.empty(groups)
    for group in range(groups):
        rest = group_of != group
        metrics = [
            evaluate(side.scores[rest].astype(np.float64), rows[rest]) for side in (later, first)
        ]
        without[group] = metrics[0] - metrics[1]
    finite_differences = without[
        np.isfinite(without)
    ]  # without all positives there is no ROC curve
    if 2 * len(finite_differences) < groups:
        return float("inf")
    share = (groups - 1) / len(finite_differences)
    return float(np.sqrt(share * np.square(finite_differences - finite_differences.mean()).sum()))
