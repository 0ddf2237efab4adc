"""What a page shows, whoever trained: a fitted `Vesper` or a run folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.report.accounts import AccountLine, account_lines
from vesper.report.command import command_of
from vesper.report.evidence import Evidence, read_evidence
from vesper.report.graphs import GraphLine, graph_lines
from vesper.report.judged import Judged
from vesper.report.privacy import Privacy
from vesper.report.run_folder import another_version, read_run
from vesper.run.ends.told import EpochFacts
from vesper.run.journal_reader import read_journal
from vesper.run.result import simulated_name

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
    judged: Judged | None = None
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

    def with_test(self, judged: Judged) -> "Contents":
        """The same page, judged on test nodes."""
        return replace(self, judged=judged, test=judged.metric)


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
    result, told = run.result, read_journal(folder)
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
            epochs=() if told is None else told.epochs,
            evidence=tuple(read_evidence(path, method=result["method"]) for path in evidence),
            command=None if "session" in result else command_of(run.config, snapshots=later),
            accounts=account_lines(run.folder, result, run=simulated_name(run.config)),
            graphs=graph_lines(folder, result, charged=run.privacy.charged, ledger=ledger),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise another_version(run.folder, error) from None
