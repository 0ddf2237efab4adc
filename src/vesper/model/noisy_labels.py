"""Objective for labels that the data party must not learn: it is sent randomised responses only.

    T[true, observed]   probability of a response     (privacy.accounting.randomized_response)
    loss       = -log (softmax(scores) T)[observed]        minimal if softmax is the true posterior
    posterior  = T[., observed]                    how likely each class makes the response
    accuracy   = mean of (1[argmax = observed] - flip) / (keep - flip)             unbiased
    roc_auc    = 1/2 + (area with responses - 1/2) / (1 - a - b)      a, b: share of wrong responses
                                                          among those that are 1, that are 0

For training and validation rows only responses are used, so gradients, verdicts and the chosen
stage are post-processing of them (claim LABEL-RR). Test labels decide nothing; they are used
unchanged to evaluate the model.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import InputError
from vesper.model.evaluation import (
    Calibration,
    calibration_of_classes,
    evaluate,
    metric_name,
    probabilities_of,
)
from vesper.model.objective import Label, RowIndices, Scores, num_effective_rows
from vesper.privacy.accounting.randomized_response import (
    flip_probability,
    keep_probability,
    transition,
)


class NoisyLabelClassification:
    """Classification of labels that are observed through randomised response.

    Args:
        labels: (num_labels,) class numbers; only those without a response are ever read.
        responses: (num_responses,) responses for the first rows: training and validation.
        num_classes: number of classes.
        num_train: number of training rows.
        epsilon: budget of each response.
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        responses: NDArray[np.int64],
        num_classes: int,
        *,
        num_train: int,
        epsilon: float,
    ) -> None:
        known = len(responses)
        self._observed = np.concatenate([responses, labels[known:]])
        self._num_responses = known
        self.outputs, self.metric = num_classes, metric_name(num_classes)
        self._keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
        self._flip = flip_probability(epsilon=epsilon, num_classes=num_classes)
        self._transition = transition(epsilon=epsilon, num_classes=num_classes).astype(np.float32)
        self._share_of_ones = self._true_share(responses[:num_train])

    def loss(self, scores: Tensor, rows: RowIndices) -> Tensor:
        """Forward-corrected cross-entropy."""
        self._refuse_truth(rows)
        observed = torch.from_numpy(self._observed[rows])
        response_probabilities = scores.softmax(dim=1) @ torch.from_numpy(
            self._transition
        )  # (B, num_classes)
        return -response_probabilities.gather(1, observed[:, None]).log().mean()

    def evaluate(self, scores: Scores, rows: RowIndices) -> float:
        """Return the metric on true labels, estimated from responses; exact for test rows."""
        measured = evaluate(scores, self._observed[rows])
        if len(rows) and rows.min() >= self._num_responses:
            return measured
        self._refuse_truth(rows)
        if self.metric == "accuracy":
            estimate = 100 * (measured / 100 - self._flip) / (self._keep - self._flip)
        else:
            estimate = 50 + (measured - 50) / self._sharpness()
        return min(max(estimate, 0.0), 100.0)  # with few responses the estimate may leave the range

    def effective_rows(self, rows: RowIndices) -> int:
        """All rows, or those of the rarer of two classes, counted by responses."""
        return num_effective_rows(self._observed[rows], self.outputs)

    def predict(self, scores: Scores) -> Scores:
        """Return the probabilities of the true classes: (B, num_classes)."""
        return probabilities_of(scores, np.zeros(self.outputs))

    def calibration(self, classes: Sequence[Label]) -> Calibration:
        """Return what `predict` needs, with the names of the classes."""
        return calibration_of_classes(classes, np.zeros(self.outputs))

    def label_posteriors(self, rows: RowIndices) -> NDArray[np.float32]:
        """How likely each class makes the response; a distribution per row, as T is symmetric."""
        self._refuse_truth(rows)
        posteriors: NDArray[np.float32] = self._transition[self._observed[rows]]
        return posteriors

    def _true_share(self, responses: NDArray[np.int64]) -> float:
        """Estimate the share of class 1 among the true labels, for two classes."""
        observed = float((responses == 1).mean())
        return float(np.clip((observed - self._flip) / (self._keep - self._flip), 0.01, 0.99))

    def _sharpness(self) -> float:
        """1 - a - b: the factor by which responses pull the area under the curve towards 1/2."""
        ones, zeros = self._share_of_ones, 1 - self._share_of_ones
        seen_ones = ones * self._keep + zeros * self._flip
        wrong_ones = zeros * self._flip / seen_ones
        wrong_zeros = ones * self._flip / (1 - seen_ones)
        return 1 - wrong_ones - wrong_zeros

    def _refuse_truth(self, rows: RowIndices) -> None:
        if len(rows) and rows.max() >= self._num_responses:
            raise ValueError(
                "rows without a response cannot be trained on or mixed with rows that have one"
            )


def refuse_other_tasks(task: str, *, balanced: bool) -> None:
    """Refuse settings that randomised responses do not support.

    Raises:
        InputError: labels are numbers, or rare classes shall count more.
    """
    if task != "classification":
        raise InputError(f"label_epsilon: expected labels that are classes, got task '{task}'")
    if balanced:
        raise InputError(
            "label_epsilon: expected class_weights 'none', got 'balanced'; most responses of a "
            "rare class are wrong, and weights would make them count more"
        )
