"""Folders that are being written: whole in the end, or gone, whatever kills the process.

A writer makes `<prefix>xxxx`, holds a lock on it and moves what is in it into place when it is
whole. The system drops the lock with the process, so the next writer knows what `kill -9` left
behind from what somebody else is writing at this moment, and removes only the former. Where a
file system has no such locks, what was left behind stays.

Arrays in NumPy's files, read by one thread at a time.

NumPy reads the header of an array with `ast.literal_eval`. Before Python 3.11.8 all threads count
the depth of its syntax tree in one place, so two that read at once may end in `SystemError: AST
constructor recursion depth mismatch` (python/cpython#106905). Parties of one process are threads.

Small files: the old content or the new, whole and on disk, whatever kills the process.
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
    """Give a new folder below `parent` to write into; what is left of it at the end is removed.

    Raises:
        OSError: The folder cannot be made.
    """
    remove_abandoned(parent, prefix)
    partial, lock = _make_locked(parent, prefix)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the partial folders below `parent` whose writers are no more."""
    with suppress(OSError):
        for path in parent.iterdir():
            if path.name.startswith(prefix):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    with suppress(OSError):  # locked: somebody is writing; or gone: somebody else removed it
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
            continue  # taken for abandoned before it was locked: make another
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue  # the same, a moment later
        except OSError:
            return partial, lock  # no locks here, so nobody removes it either
        if partial.is_dir():
            return partial, lock
        os.close(lock)


_READ_LOCK = RLock()  # of one thread twice, if the garbage collector runs something that reads


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file into memory.

    Raises:
        OSError, ValueError, KeyError, EOFError, BadZipFile: it is not there, or is damaged.
    """
    with _READ_LOCK, path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def map_array(path: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory, read-only; raises as `read_arrays` does."""
    with _READ_LOCK:
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def replace_file(path: Path, content: bytes) -> None:
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
