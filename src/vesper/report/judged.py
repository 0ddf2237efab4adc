"""Nodes whose labels are known, and what the model says of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.model.metric import evaluate
from vesper.model.number_objective import r2, spearman

MEASURES = {"r2": r2, "spearman": spearman}


@dataclass(frozen=True, kw_only=True)
class JudgedClasses:
    """Labels are classes."""

    split: str
    """`validation` or `test`."""
    classes: tuple[str, ...]
    labels: NDArray[np.int64]  # (nodes,)
    probabilities: NDArray[np.float64]  # (nodes, classes)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log probabilities, none below the smallest number: (nodes, classes)."""
        return np.log(np.maximum(self.probabilities, np.finfo(np.float64).tiny))

    @property
    def metric(self) -> float:
        """Accuracy, or area under the curve for two classes, in percent."""
        return evaluate(self.scores, self.labels)


@dataclass(frozen=True, kw_only=True)
class JudgedNumbers:
    """Labels are numbers."""

    split: str
    """`validation` or `test`."""
    labels: NDArray[np.float64]  # (nodes,)
    predicted: NDArray[np.float64]  # (nodes,)
    name: str
    """Of the metric."""

    @property
    def metric(self) -> float:
        """Share of the variance that is explained, or correlation of ranks, in percent."""
        return 100 * MEASURES[self.name](self.predicted, self.labels)


Judged = JudgedClasses | JudgedNumbers
