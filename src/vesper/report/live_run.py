"""Current status of a run: not started, running, finished, failed, or lost with its process."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vesper.deployment.state_folder import session_run_name
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.report.budget_section import RunCharges, read_run_charges
from vesper.report.contents import Contents, contents_of_run
from vesper.report.graphs import GraphLine, graph_lines
from vesper.report.privacy import Privacy
from vesper.report.run_folder import privacy_from, read_run
from vesper.session.journal import JOURNAL, JournalSummary, read_journal

RunState = Literal["not started", "running", "finished", "failed", "lost"]


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """What can be shown of a run at the moment."""

    state: RunState
    journal: JournalSummary | None = None
    config: Config | None = None
    privacy: Privacy | None = None
    """The guarantee, as soon as both sides have agreed on it."""
    run_charges: RunCharges | None = None
    graphs: tuple[GraphLine, ...] = ()
    """The graph of training and the snapshots that were served; empty without snapshots."""
    contents: Contents | None = None
    """Contents of the report of a finished run, where this side knows a metric."""


def read_run_status(run: Path) -> RunStatus:
    """Read the status of a run folder of `vesper simulate`, or of a party's state folder.

    Raises:
        InputError: there is no run, or it cannot be read.
    """
    folder = _journal_folder(run)
    if folder is None:
        return RunStatus(state="not started")
    journal = read_journal(folder)
    if folder == run and any((run / name).exists() for name in ("result.json", "result")):
        return _finished_status(run, journal)
    if journal is None:
        return RunStatus(state="not started")
    state: RunState = "running"
    if journal.outcome == "failed":
        state = "failed"
    elif journal.outcome is None and not journal.is_being_written:
        state = "lost"
    session = _session_of(folder, journal)
    run_charges = None
    with suppress(InputError):  # a ledger that is being made has no first page yet
        run_charges = _run_charges(folder, journal, session)
    return RunStatus(
        state=state,
        journal=journal,
        config=journal.config,
        privacy=_planned_privacy(journal, session),
        run_charges=run_charges,
    )


def _journal_folder(run: Path) -> Path | None:
    """Find the folder that the journal is in; None before the run has started.

    A simulation writes to a partial folder, which is moved into place when it is complete.
    """
    if any((run / name).exists() for name in (JOURNAL, "result.json", "result")):
        return run
    places = [
        *run.absolute().parent.glob(f".{run.name}.partial-*/{JOURNAL}"),
        *run.glob(f".partial-*/{JOURNAL}"),
    ]
    if places:
        return max(places, key=lambda path: path.stat().st_mtime).parent
    if (run / "contract.json").exists():
        return None
    found = "found no such folder" if not run.exists() else "found something else"
    raise InputError(
        f"{run}: expected the --out of a 'vesper simulate' that has started, or the state folder "
        f"of a party, {found}"
    )


def charged_ledger(run: Path) -> Path | None:
    """Find the ledger that the edges of a run were charged to, as its journal has it.

    None for a simulation with its own ledger, and for the label party.
    """
    return _edge_ledger(read_journal(run))


def _finished_status(run: Path, journal: JournalSummary | None) -> RunStatus:
    ledger = _edge_ledger(journal)
    done = read_run(run, ledger=ledger)
    contents = contents_of_run(run, ledger=ledger) if "metric" in done.result else None
    return RunStatus(
        state="finished",
        journal=journal,
        config=done.config,
        privacy=done.privacy,
        run_charges=done.privacy.run_charges,
        graphs=graph_lines(run, done.result, run_charges=done.privacy.run_charges, ledger=ledger),
        contents=contents,
    )


def _edge_ledger(journal: JournalSummary | None) -> Path | None:
    # The label party has a ledger too, but of labels.
    return None if journal is None or journal.side == "label" else journal.ledger


def _session_of(folder: Path, journal: JournalSummary) -> str | None:
    """The session of two parties, empty before they have met; None for a simulation."""
    if journal.side == "both":
        return None
    path = folder / "session"
    return path.read_bytes().hex() if path.exists() else ""


def _run_charges(folder: Path, journal: JournalSummary, session: str | None) -> RunCharges | None:
    if journal.side == "label":
        return None
    run = journal.run if session is None else session_run_name(session)
    return read_run_charges(journal.ledger or folder / "ledger.sqlite", run=run)


def _planned_privacy(journal: JournalSummary, session: str | None) -> Privacy | None:
    """The guarantee of the run: at least its epsilon, as earlier counts are part of the budget."""
    if journal.planned is None:
        return None
    facts = dict(journal.planned["privacy"])
    if facts["plan"] == "certified":
        facts["certified_epsilon"] = max(facts["certified_epsilon"], journal.config.privacy.epsilon)
    return privacy_from(facts, session=session, run_charges=None)
