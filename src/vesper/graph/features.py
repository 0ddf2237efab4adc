"""Edge-free node features: every column of the node table except `id`, as one matrix on disk.

    features[v, k] = value of the k-th feature of node v,   finite

A column of numbers is one feature; a fixed-size list of numbers is one feature per element. If all
of them are bytes (such as 0/1 bags of words), the matrix takes one byte per cell, otherwise
float32.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.files import map_array
from vesper.graph.ids import Ids
from vesper.graph.table_source import Column, Source, open_source
from vesper.progress import Progress, no_progress

Features = NDArray[np.float32] | NDArray[np.uint8]

ROWS = 1 << 14

NOT_FEATURES = {"label", "split"}
"""Columns that belong to the label party and are refused in the data party's table."""


def write_features(
    source: Source, ids: Ids, path: Path, *, progress: Progress = no_progress
) -> None:
    """Stream the features of `source` into the .npy file `path`, batch by batch."""
    columns = [column for column in source.columns if column != "id"]
    foreign = sorted(NOT_FEATURES.intersection(columns))
    if foreign:
        raise InputError(
            f"{source.path}, column {foreign[0]}: expected features only, but labels and splits "
            f"belong to the label party; make both folders with 'vesper data convert'"
        )
    widths = [feature_width(source, column) for column in columns]
    dtype = np.uint8 if columns and all(_is_byte(source, c) for c in columns) else np.float32
    row = 0
    with path.open("wb") as file:  # not mapped: a full disk would kill the process, not raise
        header = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
            "fortran_order": False,
            "shape": (len(ids), sum(widths)),
        }
        np.lib.format.write_array_header_1_0(file, header)
        for batch in source.batches(columns):
            block = np.empty((len(batch), sum(widths)), dtype)
            at = 0
            for column, width, values in zip(columns, widths, batch.columns, strict=True):
                numbers = _numbers(values, source, column, ids, row)  # (rows, width)
                _refuse_not_finite(numbers, source, column, ids, row)
                block[:, at : at + width] = numbers
                at += width
            file.write(block.data)
            row += len(batch)
            progress("reading features", row, len(ids))


def reorder(path: Path, order: NDArray[np.int64]) -> None:
    """Reorder the rows of the .npy file `path`, block by block."""
    matrix = map_array(path)  # (num_nodes, num_features)
    target = path.with_suffix(".ordered")
    with target.open("wb") as file:
        header = np.lib.format.header_data_from_array_1_0(matrix)
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(order), ROWS):
            file.write(np.ascontiguousarray(matrix[order[start : start + ROWS]]).data)
    target.replace(path)


def feature_width(source: Source, column: str) -> int:
    """Return the number of features in one column; refuse columns that are not numeric."""
    kind = source.schema.field(column).type
    if source.is_csv or _is_number(kind):
        return 1
    if pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type):
        return int(kind.list_size)
    raise InputError(
        f"{source.path}, column {column}: expected numbers or a fixed-size list of numbers, "
        f"got {kind}; turn it into numbers or leave it out"
    )


def _is_number(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _is_byte(source: Source, column: str) -> bool:
    kind = source.schema.field(column).type
    kind = kind.value_type if pa.types.is_fixed_size_list(kind) else kind
    return pa.types.is_uint8(kind) or pa.types.is_boolean(kind)


def _numbers(
    values: Column, source: Source, column: str, ids: Ids, row: int
) -> NDArray[np.generic]:
    """Convert one column of a batch to a (rows, width) array; null numbers become NaN."""
    if source.is_csv:
        return _parsed(values, source, column, ids, row).reshape(-1, 1)
    if isinstance(values, pa.FixedSizeListArray):
        if values.null_count:
            missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            raise _offence(source, column, "are missing", ids, row + missing)
        return _flat(values.flatten()).reshape(len(values), -1)
    return _flat(values).reshape(-1, 1)


def _flat(values: Column) -> NDArray[np.generic]:
    if pa.types.is_boolean(values.type) and not values.null_count:
        values = values.cast(pa.uint8())
    elif values.null_count or pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _parsed(values: Column, source: Source, column: str, ids: Ids, row: int) -> NDArray[np.float64]:
    try:
        return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        bad = [k for k, text in enumerate(values.to_pylist()) if not _reads_as_number(text)]
        examples = first_three(repr(values[k].as_py()) for k in bad)
        raise _offence(
            source, column, f"are not numbers ({examples})", ids, row + np.array(bad)
        ) from None


def _reads_as_number(text: str | None) -> bool:
    if text is None:
        return True
    try:
        pc.cast(pa.array([text]), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _refuse_not_finite(
    block: NDArray[np.generic], source: Source, column: str, ids: Ids, row: int
) -> None:
    if block.dtype.kind != "f":
        return
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite and is refused
        finite = np.isfinite(block.astype(np.float32))
    bad = np.flatnonzero(~finite.all(axis=1))
    if len(bad):
        are_large = bool(np.isfinite(block[bad]).all())
        what = "are beyond 3.4e38" if are_large else "are missing, NaN or infinite"
        raise _offence(source, column, what, ids, row + bad)


def _offence(
    source: Source, column: str, what: str, ids: Ids, rows: NDArray[np.int64]
) -> InputError:
    named = first_three(f"id {value}" for value in ids.take(rows[:3]))
    return InputError(
        f"{source.path}, column {column}: {len(rows)} values {what} ({named}); "
        f"correct these values or fill them in"
    )


def feature_columns(folder: Path) -> list[list[Any]]:
    """List name and width of each feature column of a data party's folder."""
    source = open_source(folder, "nodes")
    return [[name, feature_width(source, name)] for name in source.columns if name != "id"]
