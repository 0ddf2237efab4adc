"""Output of verbs: tables and bars on a terminal, plain lines in a pipe, JSON on request."""

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import typer

from vesper.progress import Progress


def print_line(text: str) -> None:
    """Print part of the result; exit quietly if the reader has closed the pipe (`| head -1`)."""
    try:
        typer.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Flushing the rest of the buffer at exit would print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None


def print_warning(text: str) -> None:
    """Print a line for the user of this machine alone, apart from the result."""
    typer.echo(f"vesper: {text}", err=True)


@contextmanager
def keep_running_without_output() -> Iterator[None]:
    """Let output fail quietly in the block: a closed terminal must not end a party.

    When it would end, and how, depends on how much was printed, and so on warnings that only its
    owner may see (claim NON-INTERFERENCE).
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _QuietStream(each)) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _QuietStream:
    """A stream whose writes never fail; after the first failure, they go nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop what cannot be written."""
        try:
            self._stream.write(text)
        except (OSError, ValueError):
            self._drop_everything()
        return len(text)

    def flush(self) -> None:
        """Flush what can be written."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._drop_everything()

    def _drop_everything(self) -> None:
        """Point the stream to nowhere, so that the rest of its buffer does not fail at exit."""
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


def print_json(facts: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON document; infinities become the text "inf", since JSON has none."""
    print_line(json.dumps(_json_ready(facts), indent=2))


FORMER_FIELDS = {
    "data_party_unreachable": ("data_party_is_away",),
    "detection_at_one_percent": ("found_at_one_percent",),
    "detections": ("found",),
    "older_than_head_note": ("behind_its_note",),
    "planned_traffic": ("wire",),
    "probe_noise_std": ("poll_noise_std", "asked_noise_std"),
    "self_transfers": ("transfers_to_oneself",),
}
"""Former names of fields, which are printed in addition, for scripts that read them."""


def _json_ready(value: Any) -> Any:
    if isinstance(value, Mapping):
        former = {
            name: inner for key, inner in value.items() for name in FORMER_FIELDS.get(key, ())
        }
        return {key: _json_ready(inner) for key, inner in {**value, **former}.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: first column left-aligned, others right-aligned; without frames in a pipe."""
    if not sys.stdout.isatty():
        print_line("\n".join([title, *aligned_lines([columns, *rows])]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def aligned_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align cells in columns, separated by two spaces, for programs that read lines.

    >>> aligned_lines([["graph", "spent"], ["a", "1"]])
    ['graph  spent', 'a          1']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@contextmanager
def progress_display() -> Iterator[Progress]:
    """Yield a progress callback: bars on a terminal, a line every few seconds elsewhere."""
    if not sys.stderr.isatty():
        yield _line_progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[bound]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def progress(task: str, done: int, total: int, note: str = "") -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total or None, note=note, bound="")
            bound = "at most" if task == "training" else ""  # a stage may stop early
            bars.update(tasks[task], completed=done, total=total or None, note=note, bound=bound)

        yield progress


def _line_progress() -> Progress:
    """Print a line per task at most every 5 seconds, or every VESPER_LINE_SECONDS."""
    every = float(os.environ.get("VESPER_LINE_SECONDS", "5"))
    last: dict[str, float] = {}

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        finished = total > 0 and done >= total
        if task in last and now - last[task] < every and not finished:
            return
        last[task] = now
        position = f"{task}: {done}" + (f" of {total}" if total else "")
        typer.echo(position + (f"  {note}" if note else ""), err=True)

    return progress
