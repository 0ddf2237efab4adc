"""Time windows: what is written `FROM..TO` means every time t with FROM <= t < TO.

Both ends are ISO dates (or date-times, in UTC unless they carry an offset) or both are integers.
Times are whole numbers inside: seconds since 1970 for dates, the integers themselves otherwise.
Train and test are two snapshots. An edge of one window and an edge of the other between the same
users are two records, so windows that overlap are refused.

Two windows in one folder -> a folder each: two graphs, two snapshots.

    data/, label/   ->   train/data/, train/label/, test/data/, test/label/

A node of a window has the window's name behind the `@` of its id, and an edge joins two nodes of
one window, so that every row belongs to one.
"""

import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vesper.errors import InputError

TABLES = (
    ("data/nodes.parquet", "id"),
    ("data/edges.parquet", "src"),
    ("label/labels.parquet", "id"),
)
"""Each with a column that names the window."""


def split_windows(folder: Path, names: Sequence[str]) -> None:
    """Part the tables of a folder that holds all windows; they are gone from it afterwards.

    Args:
        folder: holds `data/` and `label/`.
        names: of the windows; each becomes a folder in it.
    """
    for path, column in TABLES:
        with ExitStack() as stack:
            source = stack.enter_context(pq.ParquetFile(folder / path))
            writers = {}
            for name in names:
                out = folder / name / path
                out.parent.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(out, source.schema_arrow, compression="zstd")
                writers[name] = stack.enter_context(writer)
            for group in range(source.num_row_groups):
                rows = source.read_row_group(group)
                for name, writer in writers.items():
                    writer.write_table(rows.filter(pc.ends_with(rows[column], f"@{name}")))
    for path, _ in TABLES:
        shutil.rmtree((folder / path).parent, ignore_errors=True)


_INTEGER = re.compile(r"[+-]?[0-9]+")
_FARTHEST = 2**60  # so that differences and sums of a few times fit 64 bits
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


@dataclass(frozen=True)
class Window:
    """Half-open stretch of time [start, stop).

    Args:
        name: `train` or `test`, the part after the `@` of a node's id.
        text: What the user wrote, for messages.
        start: First second (or integer) inside.
        stop: First second (or integer) after.
        holds_dates: Whether the ends were dates; otherwise plain integers.
    """

    name: str
    text: str
    start: int
    stop: int
    holds_dates: bool


def parse_windows(*, train: str, test: str) -> tuple[Window, Window]:
    """Read both windows and refuse a pair that cannot be used together.

    >>> [w.stop - w.start for w in parse_windows(train="0..10", test="20..25")]
    [10, 5]

    Raises:
        InputError: A window does not parse or is empty, one holds dates and the other integers,
            or the two overlap.
    """
    first, second = parse_window("train", train), parse_window("test", test)
    if first.holds_dates != second.holds_dates:
        raise InputError(
            f"windows: expected two windows of dates or two of integers, "
            f"got {first.text} for train and {second.text} for test"
        )
    if first.start < second.stop and second.start < first.stop:
        raise InputError(
            f"windows: expected train and test not to overlap, got {first.text} for train and "
            f"{second.text} for test; TO is the first time outside, so 1..5 and 5..9 do not overlap"
        )
    return first, second


def parse_window(name: str, text: str) -> Window:
    """Read one `FROM..TO`.

    >>> parse_window("test", "2024-01-01..2024-01-02").stop - 86400 == 1704067200
    True

    Raises:
        InputError: It is not two dates or two integers with `..` between, or holds no time at all.
    """
    ends = [end.strip() for end in text.split("..")]
    if len(ends) != 2:
        raise InputError(
            f"{name} window: expected FROM..TO such as 2024-01-01..2024-02-01, got {text!r}"
        )
    if all(_INTEGER.fullmatch(end) for end in ends):
        start, stop, holds_dates = int(ends[0]), int(ends[1]), False
    else:
        start, stop, holds_dates = *(_seconds(name, end) for end in ends), True
    if max(abs(start), abs(stop)) > _FARTHEST:
        raise InputError(f"{name} window: expected times up to 2^60 from 0, got {text!r}")
    if start >= stop:
        raise InputError(
            f"{name} window: expected FROM before TO, got {text!r}, which holds no time at all"
        )
    return Window(name=name, text=text, start=start, stop=stop, holds_dates=holds_dates)


def _seconds(name: str, text: str) -> int:
    try:
        if not _ISO.fullmatch(text):  # fromisoformat also takes 20240101 and week dates
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{name} window: expected an ISO date such as 2024-01-31 or an integer, and the same "
            f"at both ends, got {text!r}"
        ) from None
    if moment.microsecond:
        raise InputError(f"{name} window: expected whole seconds, got {text!r}")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp())
