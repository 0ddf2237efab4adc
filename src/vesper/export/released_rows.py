"""Released features of labelled nodes, memory-mapped: a released file may be larger than memory.

    row k of the store   features of the node with label k, float32, in the order of the file

The file is read once, a batch at a time, and rows of labelled nodes are put where they belong.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.labels import LabelHoldings
from vesper.graph.table_source import Column
from vesper.progress import Progress, no_progress

BATCH = 1 << 16
"""Rows read at a time."""


@dataclass(frozen=True)
class ColumnScale:
    """Of training rows: what a column is shifted and divided by."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]


class ExportedRows:
    """The store, open for reading."""

    def __init__(self, path: Path, *, num_rows: int, width: int) -> None:
        self._rows = np.memmap(path, dtype=np.float32, mode="r", shape=(num_rows, width))
        self.width = width

    def scaled(self, rows: NDArray[np.int64], scale: ColumnScale) -> NDArray[np.float32]:
        """(rows, width), in memory and scaled."""
        taken: NDArray[np.float32] = (self._rows[rows] - scale.mean) / scale.deviation
        return taken

    def scale_of(self, rows: NDArray[np.int64]) -> ColumnScale:
        """Mean and deviation over these rows, a block at a time."""
        count, total = len(rows), np.zeros(self.width)
        squares = np.zeros(self.width)
        for start in range(0, count, BATCH):
            block = self._rows[rows[start : start + BATCH]].astype(np.float64)
            total += block.sum(axis=0)
            squares += np.square(block).sum(axis=0)
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
        deviation[deviation == 0] = 1.0  # a column that says nothing
        return ColumnScale(mean.astype(np.float32), deviation.astype(np.float32))


def feature_names(released: Path) -> list[str]:
    """Columns to learn from.

    Raises:
        InputError: the file is no released table.
    """
    try:
        schema = pq.read_schema(released)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{released}: not a readable Parquet file ({error})") from None
    names = [name for name in schema.names if name != "id"]
    if "id" not in schema.names or not names:
        raise InputError(f"{released}: expected columns id and released features, found {names}")
    return names


def write_rows(
    released: Path, labels: LabelHoldings, out: Path, *, progress: Progress = no_progress
) -> None:
    """Make the store.

    Raises:
        InputError: a labelled node is not in the file.
    """
    names = feature_names(released)
    store = np.memmap(out, dtype=np.float32, mode="w+", shape=(len(labels.ids), len(names)))
    found = np.zeros(len(labels.ids), dtype=bool)
    table = pq.ParquetFile(released, memory_map=True)
    kind = pa.int64() if labels.ids.are_integers else pa.large_string()
    done = 0
    for batch in table.iter_batches(BATCH, columns=["id", *names]):
        at = labels.ids.positions(_ids(batch.column("id"), kind, released))
        known = np.flatnonzero(at >= 0)
        values = np.stack([batch.column(name).to_numpy() for name in names], axis=1)
        store[at[known]] = values[known]
        found[at[known]] = True
        done += batch.num_rows
        progress("reading released features", done, table.metadata.num_rows)
    store.flush()
    missing = np.flatnonzero(~found)
    if len(missing):
        raise InputError(
            f"{labels.path}, column id: {len(missing)} labelled nodes are not in {released} "
            f"({first_three(labels.ids.take(missing[:3]))}); leave these rows out"
        )


def _ids(column: Column, kind: pa.DataType, released: Path) -> Column:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise InputError(
            f"{released}, column id: expected {kind}, as the labels have, got {column.type}"
        ) from None
