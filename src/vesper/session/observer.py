"""What an end tells of its session while it lasts: what was agreed on, and each epoch.

Only what this side has anyway: the data party knows no loss and no metric, the label party no
charge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from vesper.method.base import NoisePlan


@dataclass(frozen=True, kw_only=True)
class EpochFacts:
    """One epoch that is over."""

    stage: int
    epoch: int
    is_best: bool
    """Whether validation has never been better in this stage."""
    loss: float | None = None
    """Mean over the batches; None at the data party."""
    validation: float | None = None
    """Metric on validation nodes, in percent; None at the data party."""


class Told(Protocol):
    """Somebody who wants to know how a session goes."""

    def agreed(
        self, noise_plan: NoisePlan, max_work: Mapping[str, int], *, metric: str | None = None
    ) -> None:
        """Both sides have met: what is promised, and how many stages, epochs and steps at most."""

    def epoch(self, facts: EpochFacts) -> None:
        """An epoch is over."""


class Untold:
    """Nobody wants to know."""

    def agreed(
        self, noise_plan: NoisePlan, max_work: Mapping[str, int], *, metric: str | None = None
    ) -> None:
        """Forget it."""

    def epoch(self, facts: EpochFacts) -> None:
        """Forget it."""


UNTOLD = Untold()
