"""Rows of a large result that workers on this machine write where this process reads them.

    here:       landing = Landing(shape, dtype)
                landing.place(engine, worker, start)             goes to the worker
    a worker:   has_landed(values, place)                        written; nothing is sent back

Memory without a name (`memfd`), which goes with the last process that has it open: nothing is left
behind, whoever dies. Where a worker cannot have it, on another machine or as another user, or the
system gives none, there is no place, and results are sent.
"""

import mmap
import os
from contextlib import suppress
from dataclasses import dataclass
from fcntl import fcntl
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.engine.engine import Engine

Array = NDArray[Any]

F_ADD_SEALS, SEAL_FUTURE_WRITE = 1033, 0x10  # of Linux; `fcntl` does not name the second


@dataclass(frozen=True)
class OutputSlice:
    """Of some rows of a landing, for one worker."""

    path: Path
    identity: tuple[int, int]
    """Device and inode: a number of a process means another one in another container."""
    dtype: str
    offset: int


class SharedOutput:
    """A result of this shape; `rows` is all of it."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        dtype = np.dtype(dtype)
        self._row = int(dtype.itemsize * np.prod(shape[1:], dtype=np.int64))
        self._file, memory = _anonymous_memory(self._row * shape[0])
        self.rows: Array = (
            np.empty(shape, dtype=dtype)
            if memory is None
            else np.frombuffer(memory, dtype=dtype).reshape(shape)
        )

    def slice_for(self, engine: Engine, worker: int, start: int) -> OutputSlice | None:
        """Where a worker writes rows from start on; None: it sends them."""
        if self._file < 0 or not engine.is_local(worker):
            return None
        about = os.fstat(self._file)
        return OutputSlice(
            path=Path(f"/proc/{os.getpid()}/fd/{self._file}"),
            identity=(about.st_dev, about.st_ino),
            dtype=self.rows.dtype.str,
            offset=start * self._row,
        )

    def close(self) -> None:
        """Let nobody else write any more, not even who has it open; the rows stay."""
        if self._file >= 0:
            with suppress(OSError):  # systems before 5.1 cannot; workers are done by now anyway
                fcntl(self._file, F_ADD_SEALS, SEAL_FUTURE_WRITE)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> "SharedOutput":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def write_output(values: Array, place: OutputSlice | None) -> bool:
    """Write all rows of a place, at the worker; False: it cannot be had, so send them.

    Written like a file: to touch fresh memory page by page takes twice the time.
    """
    if place is None:
        return False
    rest = np.ascontiguousarray(values, dtype=place.dtype).data.cast("B")
    try:
        with place.path.open("r+b", buffering=0) as file:
            about = os.fstat(file.fileno())
            if (about.st_dev, about.st_ino) != place.identity:
                return False
            file.seek(place.offset)
            while rest:
                rest = rest[file.write(rest) :]
    except OSError:
        return False
    return True


def _anonymous_memory(size: int) -> tuple[int, mmap.mmap | None]:
    """A file in memory and its bytes; -1 and None where the system gives none."""
    if not size or not hasattr(os, "memfd_create"):
        return -1, None
    file = -1
    try:
        file = os.memfd_create("vesper-landing", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        return file, mmap.mmap(file, size)
    except OSError:  # a release that is paid for must not be lost for this
        if file >= 0:
            os.close(file)
        return -1, None
