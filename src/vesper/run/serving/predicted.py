"""What is said about nodes that were asked for, by whoever predicts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.model.objective import Label
from vesper.progress import Progress, silent
from vesper.run.measured import measure
from vesper.run.serving.kept_run import AskingRun

Budget = dict[str, float]


@dataclass(frozen=True)
class Predicted:
    """What could be said about the ids that were asked for."""

    snapshot: str | None
    values: dict[str, NDArray[np.float64]]
    """(columns,) by id."""
    cached: frozenset[str]
    """Ids that nothing has crossed for."""
    unknown: frozenset[str]
    """Ids that are no node."""
    budget: Budget | None
    refusal: str | None
    """Why the others were refused."""
    away: str | None
    """Who did not answer about the others."""


class NodePredictor(Protocol):
    """Predicts nodes, of one data party or of several."""

    run: AskingRun
    columns: list[str]
    metric: str

    def predict(
        self, ids: Sequence[str], *, limit: float | None, progress: Progress = silent
    ) -> Predicted:
        """Predict as many of the ids as can be."""

    def look(self, *, limit: float | None) -> str | None:
        """Ask about budgets; say why when somebody is away."""

    def budget(self) -> Budget | None:
        """What was heard last."""

    def judge(self, found: Predicted, truth: Mapping[str, Label], *, path: Path) -> float | None:
        """Hold predictions against labels; None where some are not predicted yet."""

    @property
    def snapshot(self) -> str | None:
        """Which graph was answered about last."""


def measured(
    found: Predicted, truth: Mapping[str, Label], run: AskingRun, *, path: Path
) -> float | None:
    """Hold predictions against labels; None where some are not predicted, or none is a node.

    Args:
        found: what was predicted.
        truth: labels by id, from the table at `path`.
        run: knows the classes and the metric.
        path: for messages.

    Raises:
        InputError: labels are none of training, or no metric can be computed on them.
    """
    known = [text for text in truth if text in found.values]
    if not known or len(known) < len(truth.keys() - found.unknown):
        return None
    predicted = np.stack([found.values[text] for text in known])  # (known, columns)
    labels = [truth[text] for text in known]
    return measure(predicted, labels, run.calibration, task=run.config.run.task, path=path)
