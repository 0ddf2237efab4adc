"""The name of a session in a file: sixteen random bytes, whole or not there."""

from pathlib import Path

from vesper.errors import VesperError
from vesper.transport.greeting import NO_SESSION
from vesper.whole_file import write_whole


def read_name(path: Path) -> bytes:
    """Read the name; `NO_SESSION` when there is none.

    Raises:
        VesperError: the file is something else.
    """
    try:
        name = path.read_bytes() if path.exists() else NO_SESSION
    except OSError as error:
        raise VesperError(f"{path}: cannot be read ({error.strerror}); restore it") from None
    if len(name) != len(NO_SESSION):
        raise VesperError(f"{path}: is damaged; restore it, or begin a new run")
    return name


def write_name(path: Path, name: bytes) -> None:
    """Put a name in place of what was there.

    Raises:
        VesperError: it cannot be written.
    """
    try:
        write_whole(path, name)
    except OSError as error:
        raise VesperError(f"{path}: cannot be written ({error.strerror})") from None
