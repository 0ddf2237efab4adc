"""The metric of a task: accuracy for many classes, area under the ROC curve for two."""

import numpy as np
from numpy.typing import NDArray


def metric_name(num_classes: int) -> str:
    """Name the metric that fits the number of classes."""
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
