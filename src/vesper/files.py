"""Writing folders and files atomically, and reading NumPy files from several threads.

Partial folders: a folder is complete in the end or removed, even after `kill -9`. A writer creates
`<prefix>xxxx`, holds a lock on it, and moves its contents into place once they are complete. The
operating system releases the lock when the process ends, so the next writer can distinguish what a
killed process left behind from what another process is writing at the moment, and removes only the
former. Where the file system has no such locks, abandoned folders stay.

NumPy files: read by one thread at a time. NumPy parses the header of an array with
`ast.literal_eval`. Before Python 3.11.8 all threads shared one counter for the depth of the syntax
tree, so two that read at once may end in `SystemError: AST constructor recursion depth mismatch`
(python/cpython#106905). Parties in one process are threads.

Small files: replaced as a whole. After a crash the file on disk has either the old content or the
new.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def partial_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder below `parent` to write into; what is left in it is removed at the end.

    Raises:
        OSError: The folder cannot be created.
    """
    remove_abandoned(parent, prefix)
    partial, lock = _make_locked(parent, prefix)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove partial folders below `parent` whose writers no longer run."""
    with suppress(OSError):
        for path in parent.iterdir():
            if path.name.startswith(prefix):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    with suppress(OSError):  # locked by its writer, or already removed by another process
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
        finally:
            os.close(lock)


def _make_locked(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            lock = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # removed as abandoned before it was locked: make another
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue  # about to be removed as abandoned: make another
        except OSError:
            return partial, lock  # no locks on this file system, so nobody removes it either
        if partial.is_dir():
            return partial, lock
        os.close(lock)


_READ_LOCK = RLock()  # reentrant: the garbage collector may run code that reads, too


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file into memory.

    Raises:
        OSError, ValueError, KeyError, EOFError, BadZipFile: The file is missing or damaged.
    """
    with _READ_LOCK, path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def map_array(path: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory, read-only; raises what `read_arrays` raises."""
    with _READ_LOCK:
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def replace_file(path: Path, content: bytes) -> None:
    """Write or replace a file as a whole; a new file is readable by this user only.

    Raises:
        OSError: The file cannot be written; the old content is still there.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
