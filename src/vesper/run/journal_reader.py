"""Reading a journal: where a run is, since it was begun last."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.run.ends.told import EpochFacts
from vesper.run.journal import JOURNAL, is_written


@dataclass(frozen=True, kw_only=True)
class Doing:
    """What the run said last of what it does."""

    task: str
    done: int
    total: int
    """0 while it is unknown."""
    note: str


_EPOCH_FIELDS = [field.name for field in fields(EpochFacts)]
_DOING_FIELDS = [field.name for field in fields(Doing)]


@dataclass(frozen=True, kw_only=True)
class JournalRead:
    """A run as its journal tells it."""

    side: str
    """`data`, `label`, or `both` for a simulation."""
    config: Config
    ledger: Path | None
    began: float
    """Time of the first line; where the run was resumed, of the first of all."""
    last: float
    """Time of the last line."""
    agreed: Mapping[str, Any] | None
    doing: Doing | None
    epochs: tuple[EpochFacts, ...]
    """Each once, in their order; one that was trained again after a crash as it was then."""
    how: str | None
    """`finished` or `failed`; None for a run that has not said that it ended."""
    why: str
    is_written: bool
    """Whether its process is there."""


def read_journal(folder: Path) -> JournalRead | None:
    """Read the journal in a folder; None where there is none.

    Raises:
        InputError: it cannot be read, or is none of this version.
    """
    path = folder / JOURNAL
    try:
        alive = is_written(path)  # before reading: an end that comes in between is in the lines
        lines = list(_lines(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    starts = [k for k, line in enumerate(lines) if line.get("event") == "begun"]
    if not starts:
        return None
    first = max((k for k in starts if not lines[k].get("resumed")), default=starts[0])
    try:
        return _read(lines[first:], lines[starts[-1] :], is_written=alive)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: expected a journal of this version of vesper ({str(error).splitlines()[0]})"
        ) from None


def _read(
    lines: list[dict[str, Any]], since: list[dict[str, Any]], *, is_written: bool
) -> JournalRead:
    """Put lines together: of the whole run, and of those since it was started last."""
    begun, newest = since[0], {line["event"]: line for line in since}
    whole = {line["event"]: line for line in lines}
    doing, ended = newest.get("doing"), newest.get("ended", {})
    epochs = {
        (line["stage"], line["epoch"]): EpochFacts(**{name: line[name] for name in _EPOCH_FIELDS})
        for line in lines
        if line["event"] == "epoch"
    }
    return JournalRead(
        side=begun["side"],
        config=Config.model_validate(begun["config"]),
        ledger=None if begun["ledger"] is None else Path(begun["ledger"]),
        began=lines[0]["at"],
        last=lines[-1]["at"],
        agreed=whole.get("agreed"),
        doing=None if doing is None else Doing(**{name: doing[name] for name in _DOING_FIELDS}),
        epochs=tuple(epochs[key] for key in sorted(epochs)),
        how=ended.get("how"),
        why=ended.get("why", ""),
        is_written=is_written,
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines that are whole; what a process was killed in is not."""
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "at" in line and "event" in line:
            yield line
