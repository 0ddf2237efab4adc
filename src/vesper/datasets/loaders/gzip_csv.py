"""Stream a gzip-compressed CSV of numbers without a header, as OGB ships its graphs."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from vesper.datasets.loaders.offenders import Offenders
from vesper.errors import InputError

Number = TypeVar("Number", np.int64, np.float32)

_BLOCK_BYTES = 1 << 25


def width_of(path: Path) -> int:
    """Count the columns of the first line."""
    try:
        with gzip.open(path, "rb") as file:
            line = file.readline().strip()
    except FileNotFoundError:
        raise InputError(f"{path}: expected this file, found none; download it again") from None
    except (OSError, EOFError, zlib.error) as error:
        raise _not_gzip(path, error) from None
    if not line:
        raise InputError(f"{path}: expected rows of numbers, found none; download it again")
    return line.count(b",") + 1


def rows_of(path: Path, *, width: int, dtype: type[Number]) -> Iterator[NDArray[Number]]:
    """Give the rows in order, `(rows, width)` at a time.

    Raises:
        InputError: The file is missing, is no gzip CSV, or has a line that is not `width` numbers.
    """
    found = width_of(path)
    if found != width:
        raise InputError(f"{path}: expected {width} columns, found {found}; download it again")
    names = [str(column) for column in range(width)]
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    try:
        with pa_csv.open_csv(  # unzips by the ending .gz
            path,
            read_options=pa_csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
            convert_options=pa_csv.ConvertOptions(
                column_types={name: kind for name in names}, null_values=[]
            ),
        ) as reader:
            for batch in reader:
                rows = np.empty((batch.num_rows, width), dtype)
                for column, values in enumerate(batch.columns):
                    rows[:, column] = values.to_numpy(zero_copy_only=False)
                yield rows
    except OSError as error:
        raise _not_gzip(path, error) from None
    except pa.ArrowInvalid as error:
        _refuse_lines(path, width, int if dtype is np.int64 else float)
        raise InputError(f"{path}: not readable as CSV ({error}); download it again") from None


def column_of(path: Path) -> NDArray[np.int64]:
    """A file of one whole number a line."""
    return np.concatenate([rows[:, 0] for rows in rows_of(path, width=1, dtype=np.int64)])


def _refuse_lines(path: Path, width: int, number: type[int] | type[float]) -> None:
    """Name the lines that are not `width` numbers; slow, and only called when there is one."""
    expected = f"{width} {'whole numbers' if number is int else 'numbers'} a line"
    odd = Offenders(str(path), expected, "download it again")
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        for position, line in enumerate(file, start=1):
            if line.strip() and not _is_numbers(line.strip().split(","), width, number):
                odd.add([f"line {position}: {line.strip()[:40]!r}"], count=1)
    odd.refuse()


def _is_numbers(cells: list[str], width: int, number: type[int] | type[float]) -> bool:
    try:
        return len([number(cell) for cell in cells]) == width
    except ValueError:
        return False


def _not_gzip(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not a whole gzip file ({error}); download it again")
