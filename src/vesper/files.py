"""Writing folders and files atomically, and reading NumPy files from several threads.

Partial folders: a folder is complete in the end or removed, even after `kill -9`. A writer creates
`<prefix>xxxx`, holds a lock on it, and moves its contents into place once they are complete. The
operating system releases the lock when the process ends, so the next writer can distinguish what a
killed process left behind from what another process is writing at the moment, and removes only the
former. Where the file system has no such locks, abandoned folders stay.

Single files: replaced as a whole. After a crash the file on disk has either the old content or the
new. The new content is first written to `NAME.xxxx.partial`, which is locked and removed as partial
folders are.

NumPy files: read by one thread at a time. NumPy parses the header of an array with
`ast.literal_eval`. Before Python 3.11.8 all threads shared one counter for the depth of the syntax
tree, so two that read at once may end in `SystemError: AST constructor recursion depth mismatch`
(python/cpython#106905). Parties in one process are threads.
"""

import fcntl
import os
import re
import secrets
import shutil
import tempfile
import tokenize
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import IO, Any

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
        try:
            shutil.rmtree(partial, ignore_errors=True)
        except BaseException:  # Ctrl-C: whoever has pressed it reads that nothing is left
            shutil.rmtree(partial, ignore_errors=True)
            raise
        finally:
            os.close(lock)


def sync_tree(folder: Path) -> None:
    """Wait until everything in a folder is on disk, so that a power loss leaves it whole.

    Raises:
        OSError: it cannot be written.
    """
    for path in (*folder.rglob("*"), folder):
        if not path.is_symlink():
            sync_path(path)


def sync_path(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk; raises as `sync_tree` does."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


@contextmanager
def _damage_as_value_error() -> Iterator[None]:
    """Turn whatever a damaged file makes zipfile, zlib and NumPy's parser raise into ValueError.

    RuntimeError: a flipped bit can mark an archive as encrypted, or as one of another version.
    """
    try:
        yield
    except (RuntimeError, zlib.error, tokenize.TokenError, SyntaxError, OverflowError) as error:
        raise ValueError(f"damaged: {error}") from None


def read_arrays(source: Path | bytes) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file, or of the content of one, into memory.

    Raises:
        OSError, ValueError, KeyError, EOFError, BadZipFile: The file is missing or damaged.
    """
    with (
        _damage_as_value_error(),
        _READ_LOCK,
        BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        return {name: stored[name] for name in stored.files}


def map_array(path: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory, read-only; raises what `read_arrays` raises."""
    with _damage_as_value_error(), _READ_LOCK:
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


_PARTIAL_NAME = re.compile(r"(?P<name>.+)\.[0-9a-f]{1,8}\.partial", re.DOTALL)
"""Eight random digits; earlier versions wrote the number of the process."""


@contextmanager
def replacement_of(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Yield an open file that takes the place of `path` if the block ends normally.

    Args:
        path: what to write or replace.
        private: make the file readable by this user only.

    Raises:
        OSError: the file cannot be written; the old content is still there.
    """
    remove_abandoned_files(path.parent, path.name)
    partial, handle = _open_locked(path, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)  # before the lock is released: then it counts as abandoned
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Write or replace a file as a whole; it is readable by this user only.

    Raises:
        OSError: The file cannot be written; the old content is still there.
    """
    with replacement_of(path, private=True) as file:
        file.write(content)


def remove_abandoned_files(folder: Path, name: str = "") -> None:
    """Remove partial files in `folder` whose writers no longer run.

    Args:
        folder: where they are.
        name: only replacements of the file with this name; by default, of any file.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            partial = _PARTIAL_NAME.fullmatch(path.name)
            if partial and name in ("", partial["name"]):
                _remove_file_if_abandoned(path)


def _remove_file_if_abandoned(path: Path) -> None:
    with suppress(OSError):  # locked by its writer, already removed, or no file
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), path.stat()):
                path.unlink()
        finally:
            os.close(lock)


def _open_locked(path: Path, mode: int) -> tuple[Path, int]:
    while True:
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue  # about to be removed as abandoned: make another
        except OSError:
            return partial, handle  # no locks on this file system, so nobody removes it either
        if partial.exists():
            return partial, handle
        os.close(handle)
