"""Read the arrays of an .npz file in blocks of rows: never whole, never by pickle.

Count what is wrong in a stream, and refuse it once at the end.

Read a Parquet table in batches; every error names the file and the column.
"""

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vesper.errors import InputError, first_three


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


class Offenders:
    """What breaks one rule of one column, while the rows pass by.

    >>> odd = Offenders("edges.csv, column 2", "node numbers below 3", "drop these rows")
    >>> odd.add([7, 9], count=2)
    >>> odd.refuse()
    Traceback (most recent call last):
    vesper.errors.InputError: edges.csv, column 2: expected node numbers below 3, found 2 others \
(first 2: 7, 9); drop these rows
    """

    def __init__(self, place: str, expected: str, fix: str) -> None:
        self._place = place
        self._expected = expected
        self._fix = fix
        self._count = 0
        self._named: list[object] = []

    def add(self, offenders: Iterable[object], *, count: int) -> None:
        """Remember `count` offenders; only the first three of the stream are kept by name."""
        self._count += count
        self._named.extend(islice(offenders, 3 - len(self._named)))

    def refuse(self) -> None:
        """Raise when there was any offender.

        Raises:
            InputError: With the place, the count and the first three.
        """
        if self._count:
            raise InputError(
                f"{self._place}: expected {self._expected}, found {self._count} others "
                f"({first_three(self._named)}); {self._fix}"
            )


class ParquetRows:
    """One Parquet file that has the columns `needed`."""

    def __init__(self, path: Path, *, needed: Sequence[str]) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(f"{path}: expected this file, found none; add it")
        try:
            with pq.ParquetFile(path) as file:
                self.schema = file.schema_arrow
                self.num_rows = file.metadata.num_rows
        except (OSError, pa.ArrowInvalid) as error:
            raise self._broken(error) from None
        missing = [name for name in needed if name not in self.schema.names]
        if missing:
            shown = ", ".join(self.schema.names[:8])
            raise InputError(
                f"{path}: expected the columns {', '.join(needed)}; {', '.join(missing)} missing, "
                f"found {shown}{', ...' if len(self.schema.names) > 8 else ''}; rename or add them"
            )

    def batches(self, columns: Sequence[str], rows_at_once: int) -> Iterator[pa.RecordBatch]:
        """The named columns, in order of rows."""
        try:
            with pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(rows_at_once, columns=list(columns))
        except (OSError, pa.ArrowInvalid) as error:
            raise self._broken(error) from None

    def whole_numbers(self, batch: pa.RecordBatch, column: str, first: int) -> NDArray[np.int64]:
        """One column of a batch that starts at row `first`: whole numbers, none missing."""
        values = batch.column(column)
        if not pa.types.is_integer(values.type):
            raise InputError(
                f"{self.path}, column {column}: expected whole numbers, found {values.type}; "
                f"change its type"
            )
        if values.null_count:
            rows = first + 1 + np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            raise InputError(
                f"{self.path}, column {column}: expected a number in every row, found "
                f"{values.null_count} empty ({first_three(f'row {row}' for row in rows)}); "
                f"fill or drop these rows"
            )
        try:
            return np.asarray(values.cast(pa.int64()).to_numpy(), np.int64)
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.path}, column {column}: expected numbers that fit 64 bits with sign, found "
                f"larger ones; number them anew"
            ) from None

    def _broken(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: not a readable Parquet file ({error}); write it again")
