"""Data frames of other libraries: pandas, polars, Arrow. None of them is imported but Arrow.

A pandas index names rows unless it only counts them from 0. Frames of polars and Arrow have no
index, so one of their columns names the rows, if any.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.ids import Ids, is_text

PAIR_NAMES = (("src", "dst"), ("source", "target"), ("from", "to"))
"""Names of the two columns of an edge table, if it has more than two columns."""


def part_of(value: Any, name: str) -> Any:
    """Return an attribute, or None; a PyG `HeteroData` raises KeyError for missing ones."""
    try:
        return getattr(value, name, None)
    except KeyError:
        return None


def is_frame(value: Any) -> bool:
    """Whether it is a table with named columns."""
    return _names_of(value) is not None


def columns_of(value: Any) -> dict[str, Any]:
    """Return the columns of a frame by name.

    Raises:
        InputError: two columns have the same name.
    """
    names = _names_of(value)
    assert names is not None, "callers check `is_frame`"
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise InputError(f"expected columns with different names, got {', '.join(sorted(texts))}")
    if callable(part_of(value, "get_column")):  # polars
        return {str(name): value.get_column(name) for name in names}
    if isinstance(value, pa.Table):
        return {name: value.column(name) for name in value.column_names}
    return {str(name): value[name] for name in names}  # pandas


def index_of(value: Any) -> NDArray[Any] | None:
    """Return the index of a pandas object, if it names rows instead of counting them from 0.

    Raises:
        InputError: it has several levels.
    """
    index = part_of(value, "index")
    if part_of(value, "iloc") is None or index is None or not hasattr(index, "nlevels"):
        return None
    if index.nlevels > 1:
        raise InputError(
            f"index: expected one level, got {index.nlevels}; use reset_index, and keep the ids "
            f"as the only level"
        )
    counts = getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1
    return None if counts else np.asarray(index)


def matrix_of(value: Any, what: str) -> NDArray[Any]:
    """Return the columns of a frame side by side: (rows, columns).

    Raises:
        InputError: a column holds no numbers.
    """
    columns = {name: _values_of(column) for name, column in columns_of(value).items()}
    for name, values in columns.items():
        if values.dtype.kind not in "fiub":
            raise InputError(
                f"{what}, column '{name}': expected numbers, got {_kind_of(values)}; convert it, "
                f"leave it out, or name it with ids='{name}' if it holds the ids of the nodes"
            )
    if not columns:
        raise InputError(f"{what}: expected at least one column, got none")
    return np.column_stack(list(columns.values()))


def without_column(value: Any, name: str) -> Any:
    """Return a frame without one of its columns."""
    if isinstance(value, pa.Table):
        return value.drop_columns([name])
    if callable(part_of(value, "get_column")):
        return value.drop(name)
    return value.drop(columns=[name])


def pairs_of(table: Any, what: str) -> NDArray[Any]:
    """Return the pairs of an edge table: (2, rows).

    Raises:
        InputError: it is not clear which columns are the ends of the edges.
    """
    columns = columns_of(table)
    chosen: Sequence[str] = list(columns)
    for names in PAIR_NAMES:
        if set(names) <= set(columns):
            chosen = names
            break
    if len(chosen) != 2:
        raise InputError(
            f"{what}: expected an edge table with columns src and dst, or with two columns, got "
            f"{', '.join(columns) or 'none'}; rename or choose the columns"
        )
    ends = [_values_of(columns[name]) for name in chosen]
    return np.stack([each.astype(object) for each in ends]) if _differ(ends) else np.stack(ends)


def id_column(given: Any, what: str) -> Any:
    """Return ids as an int64 or large_string column.

    Raises:
        InputError: they are neither whole numbers nor text, mixed, or some are missing.
    """
    values = np.asarray(given)
    if values.ndim != 1:
        raise InputError(f"{what}: expected one id per node, got shape {values.shape}")
    if values.dtype.kind == "f" and (values == np.round(values)).all():
        values = values.astype(np.int64)  # pandas turns whole numbers with gaps into decimals
    try:
        column = pa.array(values.tolist() if values.dtype.kind in "OUS" else values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        column = None
    if column is not None and not column.null_count and len(column):
        if pa.types.is_integer(column.type):
            return column.cast(pa.int64())
        if is_text(column.type):
            return column.cast(pa.large_string())
    raise InputError(
        f"{what}: expected whole numbers or text as ids, one kind and none missing, got "
        f"{first_three(repr(value) for value in values[:3].tolist())}"
    )


def distinct_ids(given: Any, what: str, *, num_nodes: int | None) -> Ids:
    """Return the ids of all nodes, in the order of their features.

    Raises:
        InputError: they are not one different id per node.
    """
    column = id_column(given, what)
    if num_nodes is not None and len(column) != num_nodes:
        raise InputError(
            f"{what}: expected one id per row of the features, which are {num_nodes}, got "
            f"{len(column)}"
        )
    counts = pc.value_counts(column)
    repeated = counts.filter(pc.greater(counts.field("counts"), pa.scalar(1))).field("values")
    if len(repeated):
        raise InputError(
            f"{what}: {len(repeated)} ids name more than one node "
            f"({first_three(repeated.to_pylist())}); keep one row per node"
        )
    return Ids(column)


def _names_of(value: Any) -> list[Any] | None:
    if isinstance(value, pa.Table):
        return list(value.column_names)
    is_polars = callable(part_of(value, "get_column"))
    is_pandas = part_of(value, "iloc") is not None and part_of(value, "columns") is not None
    return list(value.columns) if is_polars or is_pandas else None


def _values_of(column: Any) -> NDArray[Any]:
    """Return a column as an array; numbers that were stored as objects become numbers."""
    if isinstance(column, pa.ChunkedArray):
        return np.asarray(column.to_numpy())
    values = np.asarray(column)
    if values.dtype == object and hasattr(column, "dtype"):
        kind = str(column.dtype).lower()
        if kind.startswith(("int", "uint", "float", "bool")):  # a nullable column of pandas
            return np.asarray(column.to_numpy(dtype="float64", na_value=np.nan))
    return values


def _kind_of(values: NDArray[Any]) -> str:
    return "text" if values.dtype.kind in "OUTS" else str(values.dtype)


def _differ(ends: Sequence[NDArray[Any]]) -> bool:
    return ends[0].dtype.kind != ends[1].dtype.kind
