"""Predictions from the scores of a trained decoder, and the metric that evaluates them.

classes:  probabilities = softmax(scores - log weight)       removes the class weights of the loss
numbers:  sum over bins of softmax(scores)[bin] centre[bin]

Neither needs the training labels. The metric is accuracy for many classes, area under the ROC curve
for two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

NUMBER_METRICS = {"regression": "r2", "ranking": "spearman"}
"""Metric by task, where labels are numbers."""


def probabilities_of(scores: Scores, log_weights: NDArray[np.float64]) -> Scores:
    """(B, num_classes) scores -> probabilities."""
    logits = scores - log_weights
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Scores = odds / odds.sum(axis=1, keepdims=True)
    return probabilities


def expected_number_of(scores: Scores, centres: NDArray[np.float64]) -> Scores:
    """(B, bins) scores -> (B,) numbers."""
    numbers: Scores = probabilities_of(scores, np.zeros_like(centres)) @ centres
    return numbers


@dataclass(frozen=True)
class Calibration:
    """The part of an objective that predictions need after training.

    Args:
        classes: in the order of the scores; empty if labels are numbers.
        constants: log weights of the classes, or centres of the bins.
    """

    classes: tuple[int | float | str, ...]
    constants: tuple[float, ...]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of `predict`: one per class, or `score` for numbers."""
        return [f"p_{name}" for name in self.classes] or ["score"]

    def predict(self, scores: Scores) -> Scores:
        """(B, outputs) scores -> (B, columns)."""
        constants = np.array(self.constants)
        if self.classes:
            return probabilities_of(scores, constants)
        return expected_number_of(scores, constants)[:, None]


def calibration_of_classes(
    classes: Sequence[int | float | str], log_weights: NDArray[np.float64]
) -> Calibration:
    """Return the calibration of a classification."""
    return Calibration(tuple(classes), tuple(map(float, log_weights)))


def calibration_of_numbers(centres: NDArray[np.float64]) -> Calibration:
    """Return the calibration of a regression or a ranking."""
    return Calibration((), tuple(map(float, centres)))


def metric_name_of(calibration: Calibration, *, task: str) -> str:
    """Return the name of the metric of a run."""
    if calibration.classes:
        return metric_name(len(calibration.classes))
    return NUMBER_METRICS["ranking" if task == "ranking" else "regression"]


def metric_name(num_classes: int) -> str:
    """Return the name of the metric for this number of classes."""
    return "roc_auc" if num_classes == 2 else "accuracy"


def evaluate(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Score (n, num_classes) logits against (n,) labels, in percent."""
    if scores.shape[1] == 2:
        return 100 * roc_auc(scores[:, 1] - scores[:, 0], labels)
    return 100 * float((scores.argmax(axis=1) == labels).mean())


def roc_auc(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """P(score of a positive > score of a negative) + P(tie) / 2; NaN with one class only.

    >>> roc_auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    0.875
    """
    positives = int((labels == 1).sum())
    negatives = len(labels) - positives
    if positives == 0 or negatives == 0:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2  # (distinct scores,)
    total = float(mean_rank[inverse][labels == 1].sum())
    return (total - positives * (positives + 1) / 2) / (positives * negatives)
