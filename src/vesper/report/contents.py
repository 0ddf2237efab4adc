"""What a page shows, whoever trained: a fitted `Vesper` or a run folder.

The command that repeats a simulation: everything that is not as the method has it by itself.

Nodes whose labels are known, and what the model says of them.
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
from vesper.session.config import load_config
from vesper.session.journal import read_journal
from vesper.session.observer import EpochFacts
from vesper.session.result import simulated_run_name


def command_of(config: Config, *, snapshots: Sequence[str] = ()) -> str:
    """Write the command; folders are the reader's, and so are those of `snapshots`.

    >>> command_of(load_config(None, {"epsilon": 1.0, "epochs": 5}))
    'vesper simulate --data DATA --out OUT --method certified --set epsilon=1.0 --set epochs=5'
    """
    usual = load_config(None, {"method": config.run.method}).model_dump()
    settings = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for table, values in config.model_dump().items()
        for key, value in values.items()
        if value != usual[table][key]
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    start = ["vesper", "simulate", "--data", "DATA", "--out", "OUT", "--method", config.run.method]
    later = [word for name in snapshots for word in ("--snapshot", name)]
    return shlex.join([*start, *later, *options])


MEASURES = {"r2": r2, "spearman": spearman}


@dataclass(frozen=True, kw_only=True)
class ClassEvaluation:
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
class NumberEvaluation:
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


Evaluation = ClassEvaluation | NumberEvaluation


METRICS = {
    "roc_auc": "ROC AUC",
    "accuracy": "Accuracy",
    "r2": "R\u00b2",
    "spearman": "Spearman's rho",
}


def metric_label(metric: str) -> str:
    """A metric as people call it."""
    return METRICS.get(metric, metric.replace("_", " "))


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything on the page. Nothing here was computed from edges but through releases."""

    method: str
    metric: str
    validation: float
    test: float | None
    chosen_stage: int
    stages: tuple[Mapping[str, float], ...]
    """Validation, and test where known, of each stage; stage 0 of several reads no edge."""
    privacy: Privacy
    config: Config
    sizes: Mapping[str, int]
    seconds: float | None = None
    evaluation: Evaluation | None = None
    epochs: tuple[EpochFacts, ...] = ()
    """How it was learned, where that was written down."""
    evidence: tuple[Evidence, ...] = ()
    """What attacks and audits found."""
    command: str | None = None
    """That repeats it; None where noise cannot be repeated."""
    accounts: tuple[AccountLine, ...] = ()
    """What is protected from whom, where there are several data parties."""
    graphs: tuple[GraphLine, ...] = ()
    """That of training and later ones, where there are any."""

    @property
    def metric_label(self) -> str:
        """The metric as people call it."""
        return metric_label(self.metric)

    def with_test(self, evaluation: Evaluation) -> "Contents":
        """The same page, judged on test nodes."""
        return replace(self, evaluation=evaluation, test=evaluation.metric)


def contents_of_run(
    folder: Path, *, ledger: Path | None = None, evidence: Sequence[Path] = ()
) -> Contents:
    """Read the run folder of `vesper simulate`, or the state folder of a label party.

    Args:
        folder: of the run.
        ledger: the data party's, where it is at hand; a simulation has its own.
        evidence: files of what attacks and audits found.
    """
    run = read_run(folder, ledger=ledger)
    result, journal = run.result, read_journal(folder)
    if "session" in result and "metric" not in result:
        raise InputError(
            f"{run.folder}: this is the data party's side of a run, which knows no metric; give "
            f"the state folder of the label party"
        )
    try:
        later = [each["name"] for each in result.get("snapshots", ())]
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
            command=None if "session" in result else command_of(run.config, snapshots=later),
            accounts=account_lines(run.folder, result, run=simulated_run_name(run.config)),
            graphs=graph_lines(folder, result, run_charges=run.privacy.run_charges, ledger=ledger),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise version_error(run.folder, error) from None
