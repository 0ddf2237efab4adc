"""Shared memory for a large result: workers on this machine write rows, this process reads them.

    this process:   output = SharedOutput(shape, dtype)
                    output.slice_for(engine, worker, start)      is sent to the worker
    a worker:       write_output(values, place)                  writes rows; nothing is sent back

The memory is anonymous (`memfd`) and disappears with the last process that has it open, so nothing
is left behind, whichever process dies. If a worker cannot open it (another machine or user), or the
system provides none, there is no slice, and results are sent.
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

F_ADD_SEALS, SEAL_FUTURE_WRITE = 1033, 0x10  # Linux; the module `fcntl` lacks the second


@dataclass(frozen=True)
class OutputSlice:
    """Location of some rows of a shared output, for one worker."""

    path: Path
    identity: tuple[int, int]
    """Device and inode, because in another container a process number means another process."""
    dtype: str
    offset: int


class SharedOutput:
    """Result array of a given shape; `rows` is the whole array."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        dtype = np.dtype(dtype)
        self._row_bytes = int(dtype.itemsize * np.prod(shape[1:], dtype=np.int64))
        self._file, memory = _anonymous_memory(self._row_bytes * shape[0])
        self.rows: Array = (
            np.empty(shape, dtype=dtype)
            if memory is None
            else np.frombuffer(memory, dtype=dtype).reshape(shape)
        )

    def slice_for(self, engine: Engine, worker: int, start: int) -> OutputSlice | None:
        """Where a worker writes rows from `start` on; None if it has to send them."""
        if self._file < 0 or not engine.is_local(worker):
            return None
        status = os.fstat(self._file)
        return OutputSlice(
            path=Path(f"/proc/{os.getpid()}/fd/{self._file}"),
            identity=(status.st_dev, status.st_ino),
            dtype=self.rows.dtype.str,
            offset=start * self._row_bytes,
        )

    def close(self) -> None:
        """Forbid all further writes, even through open files; the rows stay readable here."""
        if self._file >= 0:
            with suppress(OSError):  # Linux before 5.1 cannot; workers are done anyway
                fcntl(self._file, F_ADD_SEALS, SEAL_FUTURE_WRITE)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> "SharedOutput":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def write_output(values: Array, place: OutputSlice | None) -> bool:
    """Write all rows of a slice, at the worker; False if that is impossible, so send them.

    Writes as to a file, because touching fresh memory page by page takes twice the time.
    """
    if place is None:
        return False
    rest = np.ascontiguousarray(values, dtype=place.dtype).data.cast("B")
    try:
        with place.path.open("r+b", buffering=0) as file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) != place.identity:
                return False
            file.seek(place.offset)
            while rest:
                rest = rest[file.write(rest) :]
    except OSError:
        return False
    return True


def _anonymous_memory(size: int) -> tuple[int, mmap.mmap | None]:
    """Descriptor and mapping of an anonymous file; -1 and None if the system provides none."""
    if not size or not hasattr(os, "memfd_create"):
        return -1, None
    file = -1
    try:
        file = os.memfd_create("vesper-output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        return file, mmap.mmap(file, size)
    except OSError:  # a charged release must not be lost for this
        if file >= 0:
            os.close(file)
        return -1, None
