"""A run as it is at this moment: being trained, finished, failed, or left by its process."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vesper.deployment.state_folder import run_name
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.report.budget_section import Charged, read_charged
from vesper.report.contents import Contents, contents_of_run
from vesper.report.graphs import GraphLine, graph_lines
from vesper.report.privacy import Privacy
from vesper.report.run_folder import privacy_from, read_run
from vesper.session.journal import JOURNAL, JournalRead, read_journal
from vesper.session.result import simulated_name

State = Literal["not begun", "running", "finished", "failed", "lost"]


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What there is to show of a run."""

    state: State
    told: JournalRead | None = None
    config: Config | None = None
    privacy: Privacy | None = None
    """As soon as both sides have agreed."""
    charged: Charged | None = None
    graphs: tuple[GraphLine, ...] = ()
    """That of training and later ones, where a party has answered about any."""
    contents: Contents | None = None
    """Of a run that is finished, where this side knows a metric."""


def watch(run: Path) -> Watched:
    """Look at a run folder of `vesper simulate`, or at a state folder of a party.

    Raises:
        InputError: there is no run, or it cannot be read.
    """
    folder = _place_of(run)
    if folder is None:
        return Watched(state="not begun")
    told = read_journal(folder)
    if folder == run and any((run / name).exists() for name in ("result.json", "result")):
        return _finished(run, told)
    if told is None:
        return Watched(state="not begun")
    state: State = "running"
    if told.how == "failed":
        state = "failed"
    elif told.how is None and not told.is_written:
        state = "lost"
    session = _session_of(folder, told)
    charged = None
    with suppress(InputError):  # a ledger that is being made has no first page yet
        charged = _charged(folder, told, session)
    return Watched(
        state=state,
        told=told,
        config=told.config,
        privacy=_promised(told, session),
        charged=charged,
    )


def _place_of(run: Path) -> Path | None:
    """Where a run is written: a simulation moves into place when it is whole; None: not begun."""
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
        f"{run}: expected the --out of a 'vesper simulate' that has begun, or the state folder of "
        f"a party, {found}"
    )


def _finished(run: Path, told: JournalRead | None) -> Watched:
    ledger = None if told is None or told.side == "label" else told.ledger  # of edges
    done = read_run(run, ledger=ledger)
    contents = contents_of_run(run, ledger=ledger) if "metric" in done.result else None
    return Watched(
        state="finished",
        told=told,
        config=done.config,
        privacy=done.privacy,
        charged=done.privacy.charged,
        graphs=graph_lines(run, done.result, charged=done.privacy.charged, ledger=ledger),
        contents=contents,
    )


def _session_of(folder: Path, told: JournalRead) -> str | None:
    """The session of two parties; None for a simulation. Empty before they have met."""
    if told.side == "both":
        return None
    path = folder / "session"
    return path.read_bytes().hex() if path.exists() else ""


def _charged(folder: Path, told: JournalRead, session: str | None) -> Charged | None:
    if told.side == "label":
        return None
    run = simulated_name(told.config) if session is None else run_name(session)
    return read_charged(told.ledger or folder / "ledger.sqlite", run=run)


def _promised(told: JournalRead, session: str | None) -> Privacy | None:
    """What the run promises; counts made before it are part of the budget, so not less."""
    if told.agreed is None:
        return None
    facts = dict(told.agreed["privacy"])
    if facts["plan"] == "certified":
        facts["certified_epsilon"] = max(facts["certified_epsilon"], told.config.privacy.epsilon)
    return privacy_from(facts, session=session, charged=None)
