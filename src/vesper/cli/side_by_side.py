"""What several processes say, side by side: panels on a terminal, lines with names in a pipe."""

import sys
from collections import deque
from collections.abc import Iterable, Sequence

import typer

KEPT = 4
"""Last lines of each that stay in view."""


def watched(names: Sequence[str], said: Iterable[tuple[str, str]]) -> None:
    """Show who says what until nobody says anything more."""
    if not sys.stderr.isatty():
        width = max(map(len, names))
        for name, line in said:
            typer.echo(f"{name:<{width}} | {line}", err=True)
        return
    from rich.columns import Columns
    from rich.console import Console
    from rich.live import Live
    from rich.panel import Panel

    heard: dict[str, deque[str]] = {name: deque(maxlen=KEPT) for name in names}

    def view() -> Columns:
        panels = []
        for name, lines in heard.items():
            text = "\n".join([*lines, *[""] * (KEPT - len(lines))])
            panels.append(Panel(text, title=name, width=72))
        return Columns(panels)

    with Live(view(), console=Console(stderr=True), refresh_per_second=8) as live:
        for name, line in said:
            task = line.partition(":")[0]
            if heard[name] and heard[name][-1].partition(":")[0] == task:
                heard[name].pop()  # the same task, further on
            heard[name].append(line)
            live.update(view())
