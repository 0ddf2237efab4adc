"""A score learned from runs whose answer is known: Fisher's linear discriminant.

score(x) = <w, x>,   w = (covariance + ridge)^-1 (mean with the edge - mean without)

For Gaussian noise of one size in all directions this is the likelihood ratio, but for what is not
known of the means. Learned on the first half of the runs, used on the second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

RIDGE = 0.05
"""Share of the mean variance that is added to every variance."""


@dataclass(frozen=True, eq=False)
class Discriminant:
    """A direction, and the point between the two means on it."""

    direction: Rows
    middle: float

    def score(self, rows: Rows) -> Rows:
        """(runs, width) to (runs,)."""
        return np.asarray(rows @ self.direction)


def learn(with_edge: Rows, without_edge: Rows) -> Discriminant:
    """Learn from (runs, width) each."""
    first, second = with_edge.mean(axis=0), without_edge.mean(axis=0)
    apart = np.concatenate([with_edge - first, without_edge - second])  # (runs, width)
    covariance = apart.T @ apart / max(len(apart) - 2, 1)
    variance = float(np.trace(covariance)) / len(covariance)
    covariance += (RIDGE * variance + 1e-12) * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, first - second)
    return Discriminant(direction, float((first + second) @ direction / 2))
