"""How well a score tells positives from negatives, with a confidence interval.

    auc         = P(score of a positive > score of a negative) + P(tie) / 2
    interval    = auc +- z sqrt(var / positives + var' / negatives)      (DeLong et al. 1988)
    tpr at fpr  = share of positives above the threshold that at most that share of negatives pass

var is the variance, over positives, of the share of negatives below each; var' the other way round.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError

Scores = NDArray[np.float64]

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Roc:
    """What a score is worth."""

    auc: float
    ci_low: float
    ci_high: float
    tpr: float
    """At 0.1 % false positives."""
    positives: int
    negatives: int


def roc_of(positives: Scores, negatives: Scores, *, fpr: float = 0.001) -> Roc:
    """Judge scores of positives and negatives.

    Raises:
        InputError: there are none of one kind.
    """
    if len(positives) == 0 or len(negatives) == 0:
        raise InputError(
            f"expected positives and negatives to judge an attack by, got {len(positives)} and "
            f"{len(negatives)}; ask for more pairs"
        )
    wins = _below(negatives, positives)  # (positives,)
    losses = 1 - _below(positives, negatives)  # (negatives,)
    auc = float(wins.mean())
    variance = _variance(wins) / len(positives) + _variance(losses) / len(negatives)
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * float(np.sqrt(variance))
    return Roc(
        auc=auc,
        ci_low=max(0.0, auc - reach),
        ci_high=min(1.0, auc + reach),
        tpr=tpr_at(positives, negatives, fpr=fpr),
        positives=len(positives),
        negatives=len(negatives),
    )


def tpr_at(positives: Scores, negatives: Scores, *, fpr: float) -> float:
    """Share of positives above the lowest threshold that at most `fpr` of the negatives pass."""
    allowed = int(fpr * len(negatives))  # rounded down: with few negatives, none
    threshold = np.sort(negatives)[len(negatives) - 1 - allowed]
    return float((positives > threshold).mean())


def _below(others: Scores, scores: Scores) -> Scores:
    """Share of `others` below each score; ties count half."""
    ordered = np.sort(others)
    left = np.searchsorted(ordered, scores, side="left")
    right = np.searchsorted(ordered, scores, side="right")
    return np.asarray((left + right) / (2 * len(ordered)))


def _variance(shares: Scores) -> float:
    return float(shares.var(ddof=1)) if len(shares) > 1 else 0.25
