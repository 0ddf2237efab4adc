"""Journal of a run while it lasts: `progress.jsonl`, one JSON object per line.

| event | other fields of the line |
| --- | --- |
| started | `side` (data, label or both), `config`, `resumed`, `ledger` where this side has one |
| charging | `run`: name of a simulation in ledgers |
| agreed | `privacy` as in result.json, `stages`, `epochs`, `steps`, `metric` |
| doing | `task`, `done`, `total`, `note`: at most once per second and task |
| epoch | `stage`, `epoch`, `is_best`, and at the label party `loss` and `validation` |
| ended | `how` (finished or failed) and `why` |

It is for people who watch a run; nothing is ever computed from it. It is not part of checkpoints,
frames or receipts, and contains nothing that its side does not know anyway. Each line is appended
in one write; a line that cannot be written is dropped, because training matters more. The file is
locked while a process writes it; the operating system releases the lock when the process ends.

`read_journal` summarises where a run is, since it was last started.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError
from vesper.method.base import NoisePlan
from vesper.method.settings import Config
from vesper.session.observer import NO_OBSERVER, EpochFacts, SessionObserver
from vesper.session.result import SIMULATED, privacy_facts_of, without_non_finite

JOURNAL = "progress.jsonl"

LINE_INTERVAL = 1.0
"""Seconds between two lines about the same task."""


class Journal(SessionObserver):
    """Writes what it observes into a file, and passes it on; use `open_journal`.

    Args:
        file: descriptor of the file, opened to append.
        source: where noise comes from, for people.
        observer: receives the same reports, none of them left out.
        clock: returns the time of a line.
    """

    def __init__(
        self, file: int, *, source: str, observer: SessionObserver, clock: Callable[[], float]
    ) -> None:
        self._file, self._source, self._observer, self._clock = file, source, observer, clock
        self._last: dict[str, float] = {}

    def agreed(
        self, noise_plan: NoisePlan, max_work: Mapping[str, int], *, metric: str | None = None
    ) -> None:
        """Write the guarantee and the largest amount of work."""
        self._observer.agreed(noise_plan, max_work, metric=metric)
        facts = privacy_facts_of(noise_plan, source=self._source)
        self.write("agreed", privacy=asdict(facts), **max_work, metric=metric)

    def epoch(self, facts: EpochFacts) -> None:
        """Write an epoch."""
        self._observer.epoch(facts)
        self.write("epoch", **asdict(facts))

    def progress(self, task: str, done: int, total: int, note: str = "") -> None:
        """Pass progress on, and write it once in a while."""
        self._observer.progress(task, done, total, note)
        now, is_over = self._clock(), 0 < total <= done
        if is_over or now - self._last.get(task, 0.0) >= LINE_INTERVAL:
            self._last[task] = now
            self.write("doing", task=task, done=done, total=total, note=note)

    def warning(self, text: str) -> None:
        """Pass the warning on."""
        self._observer.warning(text)

    def write(self, event: str, **facts: Any) -> None:
        """Append a line."""
        line = json.dumps(without_non_finite({"at": self._clock(), "event": event, **facts}))
        with suppress(OSError):
            os.write(self._file, f"{line}\n".encode())


@contextmanager
def open_journal(
    folder: Path,
    *,
    side: str,
    config: Config,
    ledger: Path | None = None,
    resumed: bool = False,
    source: str = SIMULATED,
    observer: SessionObserver = NO_OBSERVER,
    clock: Callable[[], float] = time.time,
) -> Iterator[Journal]:
    """Write a journal into a folder until the block ends, and how it ended.

    Args:
        folder: run folder, or state folder of the party.
        side: `data`, `label`, or `both` for a simulation.
        config: shared settings.
        ledger: ledger that this side charges; None where it charges nothing.
        resumed: whether this continues an earlier run.
        source: where noise comes from, for people.
        observer: receives the same reports, none of them left out.
        clock: returns the time of a line.
    """
    try:
        file = os.open(folder / JOURNAL, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"{folder / JOURNAL}: cannot be written ({error.strerror}); move it elsewhere"
        ) from None
    try:
        with suppress(OSError):  # locked by another process, or a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _end_torn_line(file)
        journal = Journal(file, source=source, observer=observer, clock=clock)
        charged = None if ledger is None else str(ledger.absolute())
        settings = json.loads(config.model_dump_json())
        journal.write("started", side=side, config=settings, resumed=resumed, ledger=charged)
        try:
            yield journal
        except BaseException as error:
            journal.write("ended", how="failed", why=_why(error))
            raise
        journal.write("ended", how="finished", why="")
    finally:
        os.close(file)


def is_being_written(path: Path) -> bool:
    """Whether a process is writing this journal; returns at once."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # locked, or a file system without locks, where this is unknown
            return True
    return False


def _why(error: BaseException) -> str:
    if not isinstance(error, Exception):
        return "by its user"  # Ctrl-C, or the end that a service manager asks for
    return str(error) if isinstance(error, VesperError) else type(error).__name__


def _end_torn_line(file: int) -> None:
    """End the line that a killed process may have left unfinished."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")


@dataclass(frozen=True, kw_only=True)
class TaskProgress:
    """Latest progress of the task that the run is in."""

    task: str
    done: int
    total: int
    """0 while it is unknown."""
    note: str


_EPOCH_FIELDS = [field.name for field in fields(EpochFacts)]
_PROGRESS_FIELDS = [field.name for field in fields(TaskProgress)]


@dataclass(frozen=True, kw_only=True)
class JournalSummary:
    """State of a run according to its journal."""

    side: str
    """`data`, `label`, or `both` for a simulation."""
    config: Config
    ledger: Path | None
    run: str
    """Name of a simulation in ledgers; empty: it is that of the session."""
    started_at: float
    """Time of the first line of the run, also if it was resumed since."""
    last_line_at: float
    """Time of the last line."""
    planned: Mapping[str, Any] | None
    task_progress: TaskProgress | None
    epochs: tuple[EpochFacts, ...]
    """Each epoch once, in order; the later one if it was trained again after a crash."""
    outcome: str | None
    """`finished` or `failed`; None for a run that has not recorded its end."""
    reason: str
    is_being_written: bool
    """Whether the process of the run is still there."""


def read_journal(folder: Path) -> JournalSummary | None:
    """Read the journal in a folder; None if there is none.

    Raises:
        InputError: it cannot be read, or is not a journal of this version.
    """
    path = folder / JOURNAL
    try:
        # Before reading: if the run ends in between, its end is in the lines.
        alive = is_being_written(path)
        lines = list(_lines(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    starts = [k for k, line in enumerate(lines) if line.get("event") == "started"]
    if not starts:
        return None
    first = max((k for k in starts if not lines[k].get("resumed")), default=starts[0])
    try:
        return _read(lines[first:], lines[starts[-1] :], is_being_written=alive)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: expected a journal of this version of vesper ({str(error).splitlines()[0]})"
        ) from None


def _read(
    lines: list[dict[str, Any]], since: list[dict[str, Any]], *, is_being_written: bool
) -> JournalSummary:
    """Summarise the lines of the whole run, and those since it was last started."""
    start, newest = since[0], {line["event"]: line for line in since}
    whole = {line["event"]: line for line in lines}
    task_progress, ended = newest.get("doing"), newest.get("ended", {})
    epochs = {
        (line["stage"], line["epoch"]): EpochFacts(**{name: line[name] for name in _EPOCH_FIELDS})
        for line in lines
        if line["event"] == "epoch"
    }
    return JournalSummary(
        side=start["side"],
        config=Config.model_validate(start["config"]),
        ledger=None if start["ledger"] is None else Path(start["ledger"]),
        run=str(whole.get("charging", {}).get("run", "")),
        started_at=lines[0]["at"],
        last_line_at=lines[-1]["at"],
        planned=whole.get("agreed"),
        task_progress=None
        if task_progress is None
        else TaskProgress(**{name: task_progress[name] for name in _PROGRESS_FIELDS}),
        epochs=tuple(epochs[key] for key in sorted(epochs)),
        outcome=ended.get("how"),
        reason=ended.get("why", ""),
        is_being_written=is_being_written,
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield complete lines; skip one that a killed process left unfinished."""
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "at" in line and "event" in line:
            yield line
