"""What the label party wants: a loss to train with, a metric to judge by.

loss    = mean over roots of weight[y] * -log softmax(scores)[y]
metric  = accuracy for many classes, area under the ROC curve for two (in percent)
"""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vesper.model.metric import evaluate, metric_name


class Objective(Protocol):
    """Targets, and how scores are held against them."""

    outputs: int
    metric: str

    def loss(self, scores: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Loss of (B, outputs) scores of these rows."""

    def evaluate(self, scores: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
        """Metric of the scores of these rows; more is better."""

    def voices(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """What these rows would say of themselves: (rows, outputs), each a distribution."""


class Classification:
    """Labels are class numbers."""

    def __init__(self, labels: NDArray[np.int64], num_classes: int) -> None:
        self._labels = labels
        self.outputs, self.metric = num_classes, metric_name(num_classes)

    def loss(self, scores: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Cross-entropy."""
        return F.cross_entropy(scores, torch.from_numpy(self._labels[rows]))

    def evaluate(self, scores: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
        """Accuracy, or area under the curve."""
        return evaluate(scores, self._labels[rows])

    def voices(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """One-hot labels."""
        said: NDArray[np.float32] = np.eye(self.outputs, dtype=np.float32)[self._labels[rows]]
        return said
