"""Time windows: `FROM..TO` contains every time t with FROM <= t < TO.

Both ends are ISO dates (or date-times, in UTC unless they have an offset), or both are integers.
Internally, times are whole numbers: seconds since 1970 for dates, otherwise the integers. Train
and test are two snapshots. An edge in the train window and an edge in the test window between the
same users are two records, so overlapping windows are refused.

`split_windows` turns one folder with two windows into a folder per window: two graphs, two
snapshots.

    data/, label/   ->   train/data/, train/label/, test/data/, test/label/

The id of a node ends with `@` and the name of its window, and an edge joins two nodes of one
window, so every row belongs to one window.
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
"""The tables to split, each with a column whose values end with the window's name."""


def split_windows(folder: Path, names: Sequence[str]) -> None:
    """Split the tables of a folder with all windows, and remove the original tables.

    Args:
        folder: folder with `data/` and `label/`.
        names: names of the windows; each becomes a folder in `folder`.
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
    """Half-open interval of time [start, stop).

    Args:
        name: `train` or `test`, the part after the `@` of a node's id.
        text: The window as the user wrote it, for messages.
        start: First second (or integer) inside.
        stop: First second (or integer) after the window.
        holds_dates: Whether the ends are dates, not plain integers.
    """

    name: str
    text: str
    start: int
    stop: int
    holds_dates: bool


def parse_windows(*, train: str, test: str) -> tuple[Window, Window]:
    """Parse both windows and refuse a pair that cannot be used together.

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
    """Parse one `FROM..TO`.

    >>> parse_window("test", "2024-01-01..2024-01-02").stop - 86400 == 1704067200
    True

    Raises:
        InputError: It is not two dates or two integers separated by `..`, or is empty.
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
        raise InputError(f"{name} window: expected FROM before TO, got {text!r}, which is empty")
    return Window(name=name, text=text, start=start, stop=stop, holds_dates=holds_dates)


def _seconds(name: str, text: str) -> int:
    try:
        if not _ISO.fullmatch(text):  # fromisoformat also takes 20240101 and week dates
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{name} window: expected an ISO date such as 2024-01-31 or an integer, of the same "
            f"kind at both ends, got {text!r}"
        ) from None
    if moment.microsecond:
        raise InputError(f"{name} window: expected whole seconds, got {text!r}")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp())
