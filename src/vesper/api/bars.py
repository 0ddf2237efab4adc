"""Progress for people who asked for it: a bar on standard error, in a terminal or a notebook."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vesper.progress import Progress, silent


@contextmanager
def watching(wanted: bool | Progress) -> Iterator[Progress]:
    """Give something to report to: nobody, a bar, or what the user gave."""
    if callable(wanted):
        yield wanted
    elif not wanted:
        yield silent
    else:
        from rich.console import Console
        from rich.progress import Progress as Bars

        with Bars(console=Console(stderr=True)) as bars:
            tasks: dict[str, Any] = {}

            def progress(task: str, done: int, total: int, note: str = "") -> None:
                if task not in tasks:
                    tasks[task] = bars.add_task(task)
                described = f"{task}  {note}".rstrip()
                bars.update(tasks[task], completed=done, total=total or None, description=described)

            yield progress
