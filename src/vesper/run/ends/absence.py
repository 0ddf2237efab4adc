"""Since when a data party is gone, where the run goes on without it.

    <file>   number of the first exchange that it was not there for

It is written down before anything follows from it: a label party that goes on after a crash does
without that party from the same exchange on, and so sends the others the same bytes again.
"""

from pathlib import Path

from vesper.errors import VesperError
from vesper.whole_file import write_whole


class Absence:
    """Whether one data party is still there.

    Args:
        path: keeps it; None for a run in one process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._since = None if path is None or not path.exists() else _read(path)

    def covers(self, step: int) -> bool:
        """Whether it is gone at this exchange."""
        return self._since is not None and step >= self._since

    @property
    def has_begun(self) -> bool:
        """Whether it is gone, at this exchange or from the next on."""
        return self._since is not None

    def begin(self, step: int) -> None:
        """Do without it from this exchange on."""
        if self._path is not None:
            try:
                write_whole(self._path, str(step).encode())
            except OSError as error:
                raise VesperError(
                    f"{self._path}: cannot be written ({error.strerror}); make room, then go on "
                    f"with --resume"
                ) from None
        self._since = step


def _read(path: Path) -> int:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VesperError(
            f"{path}: cannot be read ({error}); restore it, or begin a new run"
        ) from None
