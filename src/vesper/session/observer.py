"""Observer of a session: learns what was agreed, how far training is, and what goes wrong.

A session calls it and never depends on it. Everything it learns is known at its side anyway: the
data party knows no loss and no metric, the label party no charge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.progress import Progress

if TYPE_CHECKING:  # the command line imports this module and must start quickly
    from vesper.method.base import NoisePlan


@dataclass(frozen=True, kw_only=True)
class EpochFacts:
    """One finished epoch."""

    stage: int
    epoch: int
    is_best: bool
    """Whether its validation metric is the best of the stage so far."""
    loss: float | None = None
    """Mean loss over the batches; None at the data party."""
    validation: float | None = None
    """Metric on validation nodes, in percent; None at the data party."""


class SessionObserver:
    """Does nothing; subclasses override what they want to know."""

    def agreed(
        self, noise_plan: "NoisePlan", max_work: Mapping[str, int], *, metric: str | None = None
    ) -> None:
        """The parties agreed on noise and on the largest number of stages, epochs and steps."""

    def progress(self, task: str, done: int, total: int, note: str = "") -> None:
        """`done` of `total` units of a task are finished; 0 while the total is unknown."""

    def epoch(self, facts: EpochFacts) -> None:
        """An epoch is finished."""

    def warning(self, text: str) -> None:
        """A person should know this: a lost connection, or labels that have changed."""


class ProgressObserver(SessionObserver):
    """Passes progress to a callable, and nothing else."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def progress(self, task: str, done: int, total: int, note: str = "") -> None:
        """Pass it on."""
        self._progress(task, done, total, note)


NO_OBSERVER = SessionObserver()
