"""How verbs speak: tables and bars on a terminal, plain lines in a pipe, JSON when asked."""

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from vesper.progress import Progress


def say(text: str) -> None:
    """Print one piece of the result; end quietly when its reader has seen enough (`| head -1`)."""
    try:
        typer.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer would fail again, loudly, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None


def print_json(facts: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON document; infinities as the text "inf", as JSON has none."""
    say(json.dumps(_plain(facts), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: first column to the left, numbers to the right; without frames in a pipe."""
    if not sys.stdout.isatty():
        say("\n".join([title, *plain_lines_of([columns, *rows])]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def plain_lines_of(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align cells in columns, two spaces apart, for programs that read lines.

    >>> plain_lines_of([["graph", "spent"], ["a", "1"]])
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
def shown_progress() -> Iterator[Progress]:
    """Give a progress callback: bars on a terminal, a line every few seconds elsewhere."""
    if not sys.stderr.isatty():
        yield _plain_lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def progress(task: str, done: int, total: int, note: str = "") -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total or None, note=note)
            bars.update(tasks[task], completed=done, total=total or None, note=note)

        yield progress


def _plain_lines() -> Progress:
    """Lines for pipes, each task at most every few seconds, or as VESPER_LINE_SECONDS says."""
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
