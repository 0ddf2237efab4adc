"""Progress reports of long-running work.

Library code calls `progress(task, done, total)`. The command line draws a bar on a terminal and
prints plain lines in a pipe; elsewhere reports are ignored. `total` is 0 while it is unknown;
`note` is additional information to show, such as the loss.
"""

from typing import Protocol


class Progress(Protocol):
    """Receiver of progress reports."""

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None:
        """Report that `done` of `total` units of `task` are finished."""


def no_progress(task: str, done: int, total: int, note: str = "") -> None:
    """Ignore progress: the default everywhere below the command line."""
