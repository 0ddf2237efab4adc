"""Objectives for labels that are numbers: predicting them, or only their order.

    z           = (y - mean) / deviation of the training labels y
    bins        = BINS intervals of z; scores are logits over them
    prediction  = sum over bins of softmax(scores)[bin] centre[bin]
    regression  loss = cross-entropy of the bin + (prediction - z)^2,                 metric r2
    ranking     loss = cross-entropy of the bin + mean log(1 + exp(prediction_j - prediction_i))
                over pairs of the batch with y_i > y_j,   centre = bin,   metric Spearman's rho

Bins turn a number into what messages of the certified plan contain: a distribution over a few
classes. Bins of a ranking are quantiles; bins of a regression start there and are moved until their
means lose the least variance (Lloyd 1982), of which quantiles of a long tail lose half. Both
metrics are in percent. Spearman's rho needs neither a cut-off nor gains, as NDCG would, and treats
both ends of the order alike.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vesper.model.evaluation import (
    NUMBER_METRICS,
    Calibration,
    calibration_of_numbers,
    expected_number_of,
)
from vesper.model.objective import Label, RowIndices, Scores

BINS = 8
LLOYD_STEPS = 100
Numbers = NDArray[np.float64]


class Regression:
    """Prediction of the number.

    Args:
        numbers: (num_labels,) labels, training rows first.
        num_train: number of training rows; bins are computed from these.
    """

    outputs = BINS
    metric = NUMBER_METRICS["regression"]

    def __init__(self, numbers: Numbers, *, num_train: int) -> None:
        mean, deviation = mean_and_deviation(numbers[:num_train])
        self._numbers = (
            numbers - mean
        ) / deviation  # float32 would lose the digits next to a large offset
        train = self._numbers[:num_train]
        bin_edges = self._bin_edges(train)
        self._bins = np.searchsorted(bin_edges, self._numbers, side="right").astype(np.int64)
        self._standard = self._centres(train, self._bins[:num_train], bin_edges)  # (BINS,)
        self.centres = self._in_units(self._standard, mean=mean, deviation=deviation)
        self._truth = self._targets(self._numbers).astype(np.float32)  # (num_labels,)

    def loss(self, scores: Tensor, rows: RowIndices) -> Tensor:
        """Cross-entropy of the bins plus the loss of the numbers."""
        bins = torch.from_numpy(self._bins[rows])
        predicted = scores.softmax(dim=1) @ torch.from_numpy(self._standard).float()  # (B,)
        truth = torch.from_numpy(self._truth[rows])
        return F.cross_entropy(scores, bins) + self._number_loss(predicted, truth)

    def evaluate(self, scores: Scores, rows: RowIndices) -> float:
        """Explained share of the variance, in percent; below 0 if worse than the mean."""
        return 100 * r2(expected_number_of(scores, self._standard), self._numbers[rows])

    def effective_rows(self, rows: RowIndices) -> int:
        """All rows."""
        return len(rows)

    def predict(self, scores: Scores) -> Scores:
        """Return the expected numbers: (B,)."""
        return expected_number_of(scores, self.centres)

    def calibration(self, classes: Sequence[Label]) -> Calibration:
        """Return what `predict` needs; numbers have no classes."""
        return calibration_of_numbers(self.centres)

    def label_posteriors(self, rows: RowIndices) -> NDArray[np.float32]:
        """One-hot bins."""
        posteriors: NDArray[np.float32] = np.eye(BINS, dtype=np.float32)[self._bins[rows]]
        return posteriors

    def _centres(self, train: Numbers, bins: RowIndices, bin_edges: Numbers) -> Numbers:
        """Mean label of each bin; for a bin without labels, one of its edges."""
        counts = np.bincount(bins, minlength=BINS)
        sums = np.bincount(bins, weights=train, minlength=BINS)
        means = sums / np.maximum(counts, 1)
        centres: Numbers = np.where(counts > 0, means, np.append(bin_edges, bin_edges[-1]))
        return centres  # (BINS,)

    def _bin_edges(self, train: Numbers) -> Numbers:
        """Edges halfway between the means of the two adjacent bins: (BINS - 1,)."""
        ordered = np.sort(train)
        sums = np.concatenate([[0.0], np.cumsum(ordered)])
        bin_edges = quantiles(train)
        for _ in range(LLOYD_STEPS):
            cuts = np.concatenate([[0], np.searchsorted(ordered, bin_edges), [len(ordered)]])
            counts = np.diff(cuts)  # (BINS,)
            means = np.diff(sums[cuts]) / np.maximum(counts, 1)
            means = np.where(counts > 0, means, np.append(bin_edges, bin_edges[-1]))
            bin_edges = (means[1:] + means[:-1]) / 2
        return bin_edges

    def _in_units(self, centres: Numbers, *, mean: float, deviation: float) -> Numbers:
        """Convert centres to the units of the labels."""
        return centres * deviation + mean

    def _targets(self, numbers: Numbers) -> Numbers:
        return numbers

    def _number_loss(self, predicted: Tensor, truth: Tensor) -> Tensor:
        return (predicted - truth).square().mean()


class Ranking(Regression):
    """Prediction of the order of the numbers."""

    metric = NUMBER_METRICS["ranking"]

    def evaluate(self, scores: Scores, rows: RowIndices) -> float:
        """Rank correlation, in percent."""
        return 100 * spearman(self.predict(scores), self._numbers[rows])

    def _bin_edges(self, train: Numbers) -> Numbers:
        return quantiles(train)

    def _centres(self, train: Numbers, bins: RowIndices, bin_edges: Numbers) -> Numbers:
        return np.arange(BINS, dtype=np.float64)

    def _in_units(self, centres: Numbers, *, mean: float, deviation: float) -> Numbers:
        return centres

    def _targets(self, numbers: Numbers) -> Numbers:
        return mean_ranks(numbers)  # float32 preserves the order of ranks

    def _number_loss(self, predicted: Tensor, truth: Tensor) -> Tensor:
        above = truth[:, None] > truth[None, :]  # (B, B)
        if not above.any():
            return predicted.sum() * 0.0
        return F.softplus(predicted[None, :] - predicted[:, None])[above].mean()


def mean_and_deviation(train: Numbers) -> tuple[float, float]:
    """Mean and standard deviation, 1 for constants; squares of very large numbers do not overflow.

    >>> mean_and_deviation(np.array([1e200, 3e200])), mean_and_deviation(np.array([2.0, 2.0]))
    ((2e+200, 1e+200), (2.0, 1.0))
    """
    mean = float(train.mean())
    span = float(np.abs(train - mean).max(initial=0.0))
    return mean, span * float(((train - mean) / span).std()) if span else 1.0


def quantiles(train: Numbers) -> Numbers:
    """Edges of bins with equal shares of the labels: (BINS - 1,)."""
    bin_edges: Numbers = np.quantile(train, np.arange(1, BINS) / BINS)
    return bin_edges


def r2(predicted: Numbers, truth: Numbers) -> float:
    """1 - sum of squared errors / sum of squared deviations; NaN when the truth is constant.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    0.7857142857142857
    >>> round(r2(np.array([1e-200, 2e-200, 3e-200]), np.array([1e-200, 2e-200, 4e-200])), 12)
    0.785714285714
    """
    deviations = truth - truth.mean()
    if not deviations.any():
        return float("nan")
    # Squares of very large or small numbers overflow or vanish; scaling by a power of 2 is exact.
    _, power = math.frexp(float(np.abs(deviations).max()))
    errors, deviations = np.ldexp(predicted - truth, -power), np.ldexp(deviations, -power)
    return 1 - float(np.square(errors).sum()) / float(np.square(deviations).sum())


def spearman(predicted: Numbers, truth: Numbers) -> float:
    """Correlation of mean ranks; 0 for constant predictions, NaN when the truth is constant.

    >>> spearman(np.array([1.0, 5.0, 9.0]), np.array([2.0, 3.0, 70.0]))
    1.0
    """
    first, second = (ranks - ranks.mean() for ranks in map(mean_ranks, (predicted, truth)))
    lengths = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    if not second.any():
        return float("nan")
    return float(first @ second) / lengths if lengths else 0.0


def mean_ranks(values: Numbers) -> Numbers:
    """Rank of each value, starting at 1; ties share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Numbers = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks
