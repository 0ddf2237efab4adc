"""Rows of a large array for a worker: from its file where it can open that, else sent.

mapped from a file, worker near   path, offset, shape: nothing is copied
anything else                     the rows themselves
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
    """Where in a file the rows are."""

    path: Path
    dtype: str
    offset: int
    shape: tuple[int, ...]


def rows_for(engine: Engine, worker: int, array: Array, start: int, stop: int) -> Any:
    """Give rows start to stop of an array in a form to send to a worker, who calls `as_array`."""
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
    """Rows as an array, at the worker."""
    if not isinstance(rows, MappedRows):
        return rows
    if 0 in rows.shape:
        return np.empty(rows.shape, dtype=rows.dtype)  # nothing cannot be mapped
    try:
        mapped = np.memmap(
            rows.path, dtype=rows.dtype, mode="r", offset=rows.offset, shape=rows.shape
        )
    except (OSError, ValueError) as error:
        raise VesperError(f"{rows.path}: a worker cannot map it ({error})") from None
    return np.asarray(mapped)  # plain: Numba takes its slow path for memory maps


def _is_mapped(array: Array) -> bool:
    """Whether it is a whole array as its file has it, still there; a view has lost its place."""
    return (
        isinstance(array, np.memmap)
        and not isinstance(array.base, np.memmap)
        and array.flags.c_contiguous
        and Path(str(array.filename)).is_file()
    )
