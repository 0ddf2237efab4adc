"""Small files: the old content or the new, whole and on disk, whatever kills the process."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put content in place of what was there; a new file is this user's own.

    Raises:
        OSError: it cannot be written; what was there still is.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
