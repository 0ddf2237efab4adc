"""How long work reports that it moves, without knowing who watches.

Library code calls `progress(task, done, total)`; the command line draws a bar, a pipe gets plain
lines, and nobody else hears anything. `total` is 0 while it is unknown; `note` is what else a
watcher may like to know, such as the loss.
"""

from typing import Protocol


class Progress(Protocol):
    """Something that wants to know how far a task is."""

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None:
        """Say that `done` of `total` units of `task` are finished."""


def no_progress(task: str, done: int, total: int, note: str = "") -> None:
    """Ignore progress: the default everywhere below the command line."""
