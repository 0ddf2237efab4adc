"""Objectives of the label party: a loss for training, and a metric for evaluation.

loss        = sum over roots of weight[y] * -log softmax(scores)[y] / sum of weight[y]
calibrated  = scores - log weight                        weight[y] = 1, or num_train / (C count[y])
metric      = accuracy for many classes, area under the ROC curve for two (in percent)

Weights make a rare class count as much as a common one. A model that fits the weighted loss has
posteriors proportional to weight[y] p(y), so removing the weights gives p(y).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vesper.model.evaluation import (
    Calibration,
    calibration_of_classes,
    evaluate,
    metric_name,
    probabilities_of,
)

RowIndices = NDArray[np.int64]
Scores = NDArray[np.float64]
Label = int | float | str


class Objective(Protocol):
    """Targets, and how scores are compared with them."""

    outputs: int
    metric: str

    def loss(self, scores: Tensor, rows: RowIndices) -> Tensor:
        """Return the loss of (B, outputs) scores of these rows."""

    def evaluate(self, scores: Scores, rows: RowIndices) -> float:
        """Return the metric of the scores of these rows; larger is better."""

    def effective_rows(self, rows: RowIndices) -> int:
        """Return how many of these rows determine the metric: for two classes, the rarer one."""

    def predict(self, scores: Scores) -> Scores:
        """Return calibrated probabilities (B, outputs), or expected numbers (B,)."""

    def calibration(self, classes: Sequence[Label]) -> Calibration:
        """Return what `predict` needs after training; `classes` are the distinct labels."""

    def label_posteriors(self, rows: RowIndices) -> NDArray[np.float32]:
        """Return the label posteriors of these rows: (rows, outputs), each a distribution."""


class Classification:
    """Classification of labels that are class numbers.

    Args:
        labels: (num_labels,) class numbers, training rows first.
        num_classes: number of classes.
        num_train: number of training rows; class weights are computed from these.
        balanced: whether rare classes count more in the loss.
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        num_classes: int,
        *,
        num_train: int | None = None,
        balanced: bool = False,
    ) -> None:
        self._labels = labels
        self.outputs, self.metric = num_classes, metric_name(num_classes)
        counts = np.bincount(labels[:num_train], minlength=num_classes)  # (num_classes,)
        weights = np.ones(num_classes)
        if balanced:
            weights = counts.sum() / (num_classes * np.maximum(counts, 1))
        self._log_weights = np.log(weights)
        self._weights = torch.from_numpy(weights.astype(np.float32)) if balanced else None

    def loss(self, scores: Tensor, rows: RowIndices) -> Tensor:
        """Cross-entropy."""
        return F.cross_entropy(scores, torch.from_numpy(self._labels[rows]), weight=self._weights)

    def evaluate(self, scores: Scores, rows: RowIndices) -> float:
        """Accuracy, or area under the curve."""
        calibrated = scores if self._weights is None else scores - self._log_weights
        return evaluate(calibrated, self._labels[rows])

    def effective_rows(self, rows: RowIndices) -> int:
        """All rows, or those of the rarer of two classes."""
        return num_effective_rows(self._labels[rows], self.outputs)

    def predict(self, scores: Scores) -> Scores:
        """Return calibrated probabilities: (B, num_classes)."""
        return probabilities_of(scores, self._log_weights)

    def calibration(self, classes: Sequence[Label]) -> Calibration:
        """Return what `predict` needs, with the names of the classes."""
        return calibration_of_classes(classes, self._log_weights)

    def label_posteriors(self, rows: RowIndices) -> NDArray[np.float32]:
        """One-hot labels."""
        posteriors: NDArray[np.float32] = np.eye(self.outputs, dtype=np.float32)[self._labels[rows]]
        return posteriors


def num_effective_rows(labels: RowIndices, num_classes: int) -> int:
    """Return how many labels determine a metric: all, or those of the rarer of two classes.

    >>> num_effective_rows(np.array([0, 1, 0, 0]), 2), num_effective_rows(np.array([0, 1, 0, 0]), 3)
    (1, 4)
    """
    return int(np.bincount(labels, minlength=2).min()) if num_classes == 2 else len(labels)
