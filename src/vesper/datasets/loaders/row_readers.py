"""Readers of blocks of rows, with errors that name the file, the column and the bad rows.

- `NpzRows`: arrays of an .npz file, block by block and never unpickled
- `ParquetRows`: a Parquet table in batches
- `Offenders`: counts bad rows of a stream and refuses them once, at the end
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
from vesper.graph.table_source import UNREADABLE


class NpzRows:
    """Reader of one .npz file; every error names the file and the array."""

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
        """Return the shape of one array, from its header alone."""
        with self._open(name) as member:
            return self._header(name, member)[0]

    def whole(self, name: str) -> NDArray[Any]:
        """Read one array at once; for small arrays."""
        return next(self.blocks(name, rows_at_once=max(1, self.shape(name)[0])))

    def blocks(self, name: str, *, rows_at_once: int) -> Iterator[NDArray[Any]]:
        """Yield the rows of one array in order; one empty block if there are none."""
        with self._open(name) as member:
            shape, is_fortran, dtype = self._header(name, member)
            if is_fortran and len(shape) > 1:
                # Stored column by column: rows need the whole array.
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
    """Values in a stream of rows that break one rule for one column.

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
        """Record `count` offenders; only the first three of the stream are stored by name."""
        self._count += count
        self._named.extend(islice(offenders, 3 - len(self._named)))

    def refuse(self) -> None:
        """Raise if any offender was recorded.

        Raises:
            InputError: There were offenders; the message has place, count and the first three.
        """
        if self._count:
            raise InputError(
                f"{self._place}: expected {self._expected}, found {self._count} others "
                f"({first_three(self._named)}); {self._fix}"
            )


class ParquetRows:
    """Reader of one Parquet file that has the columns `needed`."""

    def __init__(self, path: Path, *, needed: Sequence[str]) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(f"{path}: expected this file, found none; add it")
        try:
            with pq.ParquetFile(path) as file:
                self.schema = file.schema_arrow
                self._names = self.schema.names
                self.num_rows = file.metadata.num_rows
        except UNREADABLE as error:
            raise self._broken(error) from None
        missing = [name for name in needed if name not in self._names]
        if missing:
            names = ", ".join(self._names[:8])
            raise InputError(
                f"{path}: expected the columns {', '.join(needed)}; {', '.join(missing)} missing, "
                f"found {names}{', ...' if len(self._names) > 8 else ''}; rename or add them"
            )

    def batches(self, columns: Sequence[str], rows_at_once: int) -> Iterator[pa.RecordBatch]:
        """Yield the named columns in row order."""
        try:
            with pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(rows_at_once, columns=list(columns))
        except UNREADABLE as error:
            raise self._broken(error) from None

    def whole_numbers(self, batch: pa.RecordBatch, column: str, first: int) -> NDArray[np.int64]:
        """Return one column of a batch that starts at row `first`; refuse missing numbers."""
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
                f"{self.path}, column {column}: expected numbers that fit a signed 64-bit integer, "
                f"found larger ones; renumber them"
            ) from None

    def _broken(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: not a readable Parquet file ({error}); write it again")
