"""Result of an attack, for all pairs or nodes and by degree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.attack.roc import Roc, Scores, roc_of

DEGREE_STARTS = (0, 4, 16, 64)
"""First degree of each group; for a pair the smaller degree counts."""

FEWEST = 5
"""Fewest positives, and negatives, for which a group is reported."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Result for pairs or nodes with degrees from `low` to `high`; None: no upper limit."""

    low: int
    high: int | None
    roc: Roc


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """Result of one attack on one run."""

    attack: str
    method: str
    plan: str
    epsilon: float
    """Epsilon in the settings of the run."""
    roc: Roc
    by_degree: tuple[Group, ...]
    knows: str
    """What the attacker knows."""
    seed: int

    def as_json(self) -> dict[str, Any]:
        """Return everything under the public JSON names."""
        return {
            "attack": self.attack,
            "method": self.method,
            "plan": self.plan,
            "epsilon": self.epsilon,
            **_facts(self.roc),
            "by_degree": [
                {"degree_from": each.low, "degree_to": each.high, **_facts(each.roc)}
                for each in self.by_degree
            ],
            "knows": self.knows,
            "seed": self.seed,
        }


def by_degree(
    scores: Scores, is_positive: NDArray[np.bool_], degrees: NDArray[np.int64]
) -> tuple[Group, ...]:
    """Evaluate each group of degrees with enough positives and negatives."""
    groups = []
    stops: Sequence[int | None] = [*DEGREE_STARTS[1:], None]
    for low, stop in zip(DEGREE_STARTS, stops, strict=True):
        inside = (degrees >= low) & (degrees < stop if stop is not None else True)
        positives, negatives = scores[inside & is_positive], scores[inside & ~is_positive]
        if min(len(positives), len(negatives)) >= FEWEST:
            high = None if stop is None else stop - 1
            groups.append(Group(low=low, high=high, roc=roc_of(positives, negatives)))
    return tuple(groups)


def _facts(roc: Roc) -> dict[str, float | int]:
    return {
        "auc": roc.auc,
        "tpr_at_0.1pct_fpr": roc.tpr,
        "ci_low": roc.ci_low,
        "ci_high": roc.ci_high,
        "positives": roc.positives,
        "negatives": roc.negatives,
    }
