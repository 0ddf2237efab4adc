"""Read the arrays of an .npz file in blocks of rows: never whole, never by pickle."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError


class NpzRows:
    """One .npz file on disk; every error names the file and the array."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.names = [name.removesuffix(".npy") for name in archive.namelist()]
        except FileNotFoundError:
            raise InputError(f"{path}: expected this file, found none; download it again") from None
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: not an .npz file ({error}); download it again") from None

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of one array, from its header alone."""
        with self._open(name) as member:
            return self._header(name, member)[0]

    def whole(self, name: str) -> NDArray[Any]:
        """One array at once, for the small ones."""
        return next(self.blocks(name, rows_at_once=max(1, self.shape(name)[0])))

    def blocks(self, name: str, *, rows_at_once: int) -> Iterator[NDArray[Any]]:
        """The rows of one array in order; one empty block when there are none."""
        with self._open(name) as member:
            shape, is_fortran, dtype = self._header(name, member)
            if is_fortran and len(shape) > 1:
                # Columns lie one after the other: only the whole array has rows.
                values = np.frombuffer(self._read(name, member, shape, dtype), dtype)
                yield values.reshape(shape, order="F")
                return
            for first in range(0, max(1, shape[0]), rows_at_once):
                part = (min(rows_at_once, shape[0] - first), *shape[1:])
                yield np.frombuffer(self._read(name, member, part, dtype), dtype).reshape(part)

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        if name not in self.names:
            raise InputError(
                f"{self.path}: expected an array '{name}', found {', '.join(self.names)}; "
                f"download it again"
            )
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as member:
                yield member
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise self._broken(name, str(error)) from None

    def _header(self, name: str, member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(member)
        else:
            shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(member)
        if dtype.hasobject or not shape:
            raise self._broken(name, f"expected rows of plain numbers, found {dtype} {shape}")
        return shape, is_fortran, dtype

    def _read(
        self, name: str, member: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> bytes:
        content = member.read(_size(shape, dtype))
        if len(content) < _size(shape, dtype):
            raise self._broken(name, "the file ends too early")
        return content

    def _broken(self, name: str, why: str) -> InputError:
        return InputError(f"{self.path}, array '{name}': not readable ({why}); download it again")


def _size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
