"""Output of several processes: side-by-side panels on a terminal, named lines in a pipe."""

import sys
from collections import deque
from collections.abc import Iterable, Sequence

import typer

LINES_IN_VIEW = 4
"""Number of last lines of each process that stay visible."""


def show_side_by_side(names: Sequence[str], lines_of_each: Iterable[tuple[str, str]]) -> None:
    """Show pairs of process name and line until there are no more."""
    if not sys.stderr.isatty():
        width = max(map(len, names))
        for name, line in lines_of_each:
            typer.echo(f"{name:<{width}} | {line}", err=True)
        return
    from rich.columns import Columns
    from rich.console import Console
    from rich.live import Live
    from rich.panel import Panel

    recent: dict[str, deque[str]] = {name: deque(maxlen=LINES_IN_VIEW) for name in names}

    def view() -> Columns:
        panels = []
        for name, lines in recent.items():
            text = "\n".join([*lines, *[""] * (LINES_IN_VIEW - len(lines))])
            panels.append(Panel(text, title=name, width=72))
        return Columns(panels)

    with Live(view(), console=Console(stderr=True), refresh_per_second=8) as live:
        for name, line in lines_of_each:
            task = line.partition(":")[0]
            if recent[name] and recent[name][-1].partition(":")[0] == task:
                recent[name].pop()  # an update of the same task
            recent[name].append(line)
            live.update(view())
