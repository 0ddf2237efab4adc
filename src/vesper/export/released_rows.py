"""Row store: released features of labelled nodes, memory-mapped.

    row k of the store   features of the node with label k, float32, columns as in the file

A released file may be larger than memory: it is read once, batch by batch, and the rows of labelled
nodes are copied to their place in the store.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.labels import LabelHoldings
from vesper.graph.table_source import UNREADABLE, Column
from vesper.progress import Progress, no_progress

BATCH = 1 << 16
"""Rows read at a time."""


@dataclass(frozen=True)
class ColumnScale:
    """Mean and standard deviation of each column over training rows."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]


class ExportedRows:
    """The row store, open for reading."""

    def __init__(self, path: Path, *, num_rows: int, width: int) -> None:
        self._rows = np.memmap(path, dtype=np.float32, mode="r", shape=(num_rows, width))
        self.width = width

    def scaled(self, rows: NDArray[np.int64], scale: ColumnScale) -> NDArray[np.float32]:
        """Read these rows into memory, scaled: (rows, width)."""
        values: NDArray[np.float32] = (self._rows[rows] - scale.mean) / scale.deviation
        return values

    def scale_of(self, rows: NDArray[np.int64]) -> ColumnScale:
        """Compute mean and deviation over these rows, block by block."""
        count, total = len(rows), np.zeros(self.width)
        squares = np.zeros(self.width)
        for start in range(0, count, BATCH):
            block = self._rows[rows[start : start + BATCH]].astype(np.float64)
            total += block.sum(axis=0)
            squares += np.square(block).sum(axis=0)
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
        deviation[deviation == 0] = 1.0  # a constant column
        return ColumnScale(mean.astype(np.float32), deviation.astype(np.float32))


def feature_names(released: Path) -> list[str]:
    """Names of the feature columns of a released file.

    Raises:
        InputError: the file is not a released table.
    """
    try:
        columns = pq.read_schema(released).names
    except UNREADABLE as error:
        raise _unreadable(released, error) from None
    names = [name for name in columns if name != "id"]
    if "id" not in columns or not names:
        raise InputError(f"{released}: expected columns id and released features, found {names}")
    return names


def write_rows(
    released: Path, labels: LabelHoldings, out: Path, *, progress: Progress = no_progress
) -> None:
    """Write the row store.

    Raises:
        InputError: the file is damaged, or a labelled node is not in it.
        OSError: the disk is full.
    """
    names = feature_names(released)
    shape = (len(labels.ids), len(names))
    with out.open("wb") as file:  # a full disk kills a process that writes to unreserved pages
        os.posix_fallocate(file.fileno(), 0, 4 * shape[0] * shape[1])
    store = np.memmap(out, dtype=np.float32, mode="r+", shape=shape)
    is_written = np.zeros(len(labels.ids), dtype=bool)
    table = pq.ParquetFile(released, memory_map=True)
    kind = pa.int64() if labels.ids.are_integers else pa.large_string()
    done = 0
    for batch in _batches(table, ["id", *names], released):
        at = labels.ids.positions(_ids(batch.column("id"), kind, released))
        known = np.flatnonzero(at >= 0)
        values = np.stack([batch.column(name).to_numpy() for name in names], axis=1)
        store[at[known]] = values[known]
        is_written[at[known]] = True
        done += batch.num_rows
        progress("reading released features", done, table.metadata.num_rows)
    store.flush()
    missing = np.flatnonzero(~is_written)
    if len(missing):
        raise InputError(
            f"{labels.path}, column id: {len(missing)} labelled nodes are not in {released} "
            f"({first_three(labels.ids.take(missing[:3]))}); remove these rows"
        )


def _batches(table: pq.ParquetFile, columns: list[str], released: Path) -> Iterator[pa.RecordBatch]:
    try:
        yield from table.iter_batches(BATCH, columns=columns)
    except UNREADABLE as error:
        raise _unreadable(released, error) from None


def _unreadable(released: Path, error: Exception) -> InputError:
    return InputError(f"{released}: not a readable Parquet file ({error}); write it again")


def _ids(column: Column, kind: pa.DataType, released: Path) -> Column:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise InputError(
            f"{released}, column id: expected {kind} as in the labels, got {column.type}; use ids "
            f"of one type"
        ) from None
