"""Rows of a large array for a worker: a reference to their file if it can open it, else a copy.

mapped from a file, local worker   path, offset and shape: nothing is copied
anything else                      the rows themselves
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.engine.engine import Engine
from vesper.errors import VesperError

Array = NDArray[Any]


@dataclass(frozen=True)
class MappedRows:
    """Location of rows in a file."""

    path: Path
    dtype: str
    offset: int
    shape: tuple[int, ...]


def rows_for(engine: Engine, worker: int, array: Array, start: int, stop: int) -> Any:
    """Prepare rows start to stop of an array for a worker, which calls `as_array` on them."""
    if engine.is_local(worker) and _is_mapped(array):
        assert isinstance(array, np.memmap)
        return MappedRows(
            path=Path(str(array.filename)),
            dtype=array.dtype.str,
            offset=array.offset + start * array.strides[0],
            shape=(stop - start, *array.shape[1:]),
        )
    return engine.share(np.ascontiguousarray(array[start:stop]))


def as_array(rows: MappedRows | Array) -> Array:
    """Convert what `rows_for` returned to an array, at the worker."""
    if not isinstance(rows, MappedRows):
        return rows
    if 0 in rows.shape:
        return np.empty(rows.shape, dtype=rows.dtype)  # an empty map is an error
    try:
        mapped = np.memmap(
            rows.path, dtype=rows.dtype, mode="r", offset=rows.offset, shape=rows.shape
        )
    except (OSError, ValueError) as error:
        raise VesperError(f"{rows.path}: a worker cannot map this file ({error})") from None
    return np.asarray(mapped)  # a plain array: Numba takes its slow path for memory maps


def _is_mapped(array: Array) -> bool:
    """Whether an array is all of an existing file; a view has lost its offset in the file."""
    return (
        isinstance(array, np.memmap)
        and not isinstance(array.base, np.memmap)
        and array.flags.c_contiguous
        and Path(str(array.filename)).is_file()
    )
