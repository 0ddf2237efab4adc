"""What a run says of itself while it lasts: `progress.jsonl`, one JSON object a line.

| event | what else is in the line |
| --- | --- |
| begun | `side` (data, label or both), `config`, `resumed`, `ledger` where this side has one |
| agreed | `privacy` as in result.json, `stages`, `epochs`, `steps`, `metric` |
| doing | `task`, `done`, `total`, `note`: at most one a second and task |
| epoch | `stage`, `epoch`, `is_best`, and at the label party `loss` and `validation` |
| ended | `how` (finished or failed) and `why` |

For people who watch; nothing is ever computed from it. It is no part of checkpoints, frames or
receipts, and holds nothing that its side has not got otherwise. Lines are appended whole and at
once; a line that cannot be written is left out, for training matters more. The file is locked as
long as somebody writes it, and the system drops the lock with the process.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError
from vesper.method.method import Promise
from vesper.method.settings import Config
from vesper.progress import Progress, silent
from vesper.run.ends.told import EpochFacts
from vesper.run.result import SIMULATED, facts_of, plain

JOURNAL = "progress.jsonl"

EVERY = 1.0
"""Seconds between two lines about the same task."""


class Journal:
    """Tells a file; use `journal_of`.

    Args:
        file: descriptor of the file, opened to append.
        source: where noise comes from, for people.
        progress: is told what the journal is told, and more often.
        clock: gives the time of a line.
    """

    def __init__(
        self, file: int, *, source: str, progress: Progress, clock: Callable[[], float]
    ) -> None:
        self._file, self._source, self._shown, self._clock = file, source, progress, clock
        self._last: dict[str, float] = {}

    def agreed(
        self, promise: Promise, most: Mapping[str, int], *, metric: str | None = None
    ) -> None:
        """Write what is promised, and how much work it is at most."""
        facts = facts_of(promise, source=self._source)
        self.write("agreed", privacy=asdict(facts), **most, metric=metric)

    def epoch(self, facts: EpochFacts) -> None:
        """Write down an epoch."""
        self.write("epoch", **asdict(facts))

    def progress(self, task: str, done: int, total: int, note: str = "") -> None:
        """Hand on, and write it down now and then."""
        self._shown(task, done, total, note)
        now, is_over = self._clock(), 0 < total <= done
        if is_over or now - self._last.get(task, 0.0) >= EVERY:
            self._last[task] = now
            self.write("doing", task=task, done=done, total=total, note=note)

    def write(self, event: str, **facts: Any) -> None:
        """Append a line."""
        line = json.dumps(plain({"at": self._clock(), "event": event, **facts}))
        with suppress(OSError):
            os.write(self._file, f"{line}\n".encode())


@contextmanager
def journal_of(
    folder: Path,
    *,
    side: str,
    config: Config,
    ledger: Path | None = None,
    resumed: bool = False,
    source: str = SIMULATED,
    progress: Progress = silent,
    clock: Callable[[], float] = time.time,
) -> Iterator[Journal]:
    """Write a journal into a folder until the block ends; say how it ended.

    Args:
        folder: of the run, or the state of the party.
        side: `data`, `label`, or `both` for a simulation.
        config: shared settings.
        ledger: what this side charges; None where it charges nothing.
        resumed: whether this goes on with the run before.
        source: where noise comes from, for people.
        progress: is told what the journal is told, and more often.
        clock: gives the time of a line.
    """
    try:
        file = os.open(folder / JOURNAL, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"{folder / JOURNAL}: cannot be written ({error.strerror}); move it away"
        ) from None
    try:
        with suppress(OSError):  # held by another, or no locks here: nobody can tell who is alive
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _end_torn_line(file)
        journal = Journal(file, source=source, progress=progress, clock=clock)
        charged = None if ledger is None else str(ledger.absolute())
        settings = json.loads(config.model_dump_json())
        journal.write("begun", side=side, config=settings, resumed=resumed, ledger=charged)
        try:
            yield journal
        except BaseException as error:
            journal.write("ended", how="failed", why=_why(error))
            raise
        journal.write("ended", how="finished", why="")
    finally:
        os.close(file)


def is_written(path: Path) -> bool:
    """Whether a process writes this journal at the moment; a reader waits for nobody."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # locked; or a file system without locks, where nobody can tell
            return True
    return False


def _why(error: BaseException) -> str:
    if not isinstance(error, Exception):
        return "by its user"  # Ctrl-C, or the end that a service manager asks for
    return str(error) if isinstance(error, VesperError) else type(error).__name__


def _end_torn_line(file: int) -> None:
    """A process that was killed may have left half a line: what comes next is not part of it."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")
