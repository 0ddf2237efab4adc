"""Contents of a report, from a fitted `Vesper` or from a run folder.

Includes predictions for nodes with known labels, and the command that repeats a simulation.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.model.evaluation import evaluate
from vesper.model.regression import r2, spearman
from vesper.report.budget_section import AccountLine, account_lines
from vesper.report.evidence_section import Evidence, read_evidence
from vesper.report.graphs import GraphLine, graph_lines
from vesper.report.privacy import Privacy
from vesper.report.run_folder import read_run, version_error
from vesper.report.run_naming import run_name
from vesper.session.config import load_config
from vesper.session.evaluation_file import read_evaluation
from vesper.session.journal import read_journal
from vesper.session.observer import EpochFacts


def command_of(config: Config, *, snapshots: Sequence[str] = ()) -> str:
    """Write the command that repeats a run: every setting that is not the method's default.

    The reader fills in the folders, also those behind the names of `snapshots`.

    >>> command_of(load_config(None, {"epsilon": 1.0, "epochs": 5}))
    'vesper simulate --data DATA --out OUT --method certified --set epsilon=1.0 --set epochs=5'
    """
    defaults = load_config(None, {"method": config.run.method}).model_dump()
    settings = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for table, values in config.model_dump().items()
        for key, value in values.items()
        if value != defaults[table][key]
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    start = ["vesper", "simulate", "--data", "DATA", "--out", "OUT", "--method", config.run.method]
    snapshot_options = [word for name in snapshots for word in ("--snapshot", name)]
    return shlex.join([*start, *snapshot_options, *options])


MEASURES = {"r2": r2, "spearman": spearman}


@dataclass(frozen=True, kw_only=True)
class ClassEvaluation:
    """Predictions for nodes whose labels are classes."""

    split: str
    """`validation` or `test`."""
    classes: tuple[str, ...]
    labels: NDArray[np.int64]  # (nodes,)
    probabilities: NDArray[np.float64]  # (nodes, classes)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log probabilities, (nodes, classes); zeros count as the smallest positive float."""
        return np.log(np.maximum(self.probabilities, np.finfo(np.float64).tiny))

    @property
    def metric(self) -> float:
        """Accuracy, or area under the curve for two classes, in percent."""
        return evaluate(self.scores, self.labels)


@dataclass(frozen=True, kw_only=True)
class NumberEvaluation:
    """Predictions for nodes whose labels are numbers."""

    split: str
    """`validation` or `test`."""
    labels: NDArray[np.float64]  # (nodes,)
    predicted: NDArray[np.float64]  # (nodes,)
    name: str
    """Name of the metric: `r2` or `spearman`."""

    @property
    def metric(self) -> float:
        """Share of explained variance, or rank correlation, in percent."""
        return 100 * MEASURES[self.name](self.predicted, self.labels)


Evaluation = ClassEvaluation | NumberEvaluation


METRICS = {
    "roc_auc": "ROC AUC",
    "accuracy": "Accuracy",
    "r2": "R\u00b2",
    "spearman": "Spearman's rho",
}


def metric_label(metric: str) -> str:
    """The name of a metric for people."""
    return METRICS.get(metric, metric.replace("_", " "))


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything that a report shows; whatever depends on edges comes from releases."""

    method: str
    metric: str
    validation: float
    test: float | None
    chosen_stage: int
    stages: tuple[Mapping[str, float], ...]
    """Validation metric of each stage, and test where known; stage 0 of several reads no edge."""
    privacy: Privacy
    config: Config
    sizes: Mapping[str, int]
    seconds: float | None = None
    evaluation: Evaluation | None = None
    epochs: tuple[EpochFacts, ...] = ()
    """The epochs of training, if a journal was written."""
    evidence: tuple[Evidence, ...] = ()
    """Results of attacks and audits."""
    command: str | None = None
    """Command that repeats the run; None where the noise cannot be repeated."""
    accounts: tuple[AccountLine, ...] = ()
    """What is protected from whom, if there are several data parties."""
    graphs: tuple[GraphLine, ...] = ()
    """The graph of training and the snapshots; empty without snapshots."""
    name: str = ""
    """Name of the run, after its folder."""
    data: str = ""
    """Name of the data's folder, where this side knows it."""
    date: float | None = None
    """When the run started, in seconds since 1970."""

    @property
    def metric_label(self) -> str:
        """The name of the metric for people."""
        return metric_label(self.metric)

    def with_test(self, evaluation: Evaluation) -> "Contents":
        """The same contents with an evaluation on test nodes."""
        return replace(self, evaluation=evaluation, test=evaluation.metric)


def contents_of_run(
    folder: Path, *, ledger: Path | None = None, evidence: Sequence[Path] = ()
) -> Contents:
    """Read the run folder of `vesper simulate`, or the state folder of a label party.

    Args:
        folder: of the run.
        ledger: the data party's, if available; a simulation has its own.
        evidence: files with results of attacks and audits.

    Raises:
        InputError: the folder holds no finished run with a metric, or a file is no evidence.
    """
    run = read_run(folder, ledger=ledger)
    result, journal = run.result, read_journal(folder)
    if "session" in result and "metric" not in result:
        raise InputError(
            f"{run.folder}: this is the data party's side of a run, which knows no metric; use "
            f"the state folder of the label party"
        )
    try:
        snapshots = [each["name"] for each in result.get("snapshots", ())]
        return Contents(
            method=result["method"],
            metric=result["metric"],
            validation=result["validation"],
            test=result["test"],
            chosen_stage=result["chosen_stage"],
            stages=tuple(result["stages"]),
            privacy=run.privacy,
            config=run.config,
            sizes={},
            seconds=result["seconds"],
            epochs=() if journal is None else journal.epochs,
            evidence=tuple(read_evidence(path, method=result["method"]) for path in evidence),
            command=None if "session" in result else command_of(run.config, snapshots=snapshots),
            accounts=account_lines(run.folder, result, run=result.get("run", "")),
            graphs=graph_lines(folder, result, run_charges=run.privacy.run_charges, ledger=ledger),
            name=run_name(folder),
            data=result.get("data", ""),
            date=None if journal is None else journal.started_at,
            evaluation=_stored_evaluation(run.folder),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise version_error(run.folder, error) from None


def _stored_evaluation(folder: Path) -> ClassEvaluation | None:
    """Return the predictions on validation nodes that the label party kept, if it did."""
    stored = read_evaluation(folder)
    if stored is None:
        return None
    predicted, labels, classes = stored
    return ClassEvaluation(
        split="validation", classes=classes, labels=labels, probabilities=predicted
    )
