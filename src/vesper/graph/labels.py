"""The label party's table: `id`, `label`, `split`. It never holds an edge.

Rows are kept by ascending id, whatever their order in the file: ids are sent in row order, so a
table sorted by label would otherwise reveal every label.

`nodes_of_label_rows` finds the nodes that the rows of a label table are about; it reads no edge.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids, is_text, read_ids
from vesper.graph.table_source import Column, Source, open_source

SPLITS = ("train", "val", "test")
NUMBER = r"^-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$"
NO_NUMBER = r"^[-+]?(nan|na|n/a|null|none|inf|infinity)$"
"""How tables write a missing number."""


@dataclass(frozen=True, eq=False)
class LabelHoldings:
    """Table of the label party, rows by ascending id.

    Args:
        path: file of the table, for messages.
        ids: one id per labelled node.
        classes: the distinct labels, ascending; `labels` are positions in it.
        labels: (num_labels,) class numbers.
        splits: (num_labels,) 0 for train, 1 for val, 2 for test.
    """

    path: Path
    ids: Ids
    classes: tuple[int | float | str, ...]
    labels: NDArray[np.int64]
    splits: NDArray[np.int8]

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the rows of one split."""
        return np.flatnonzero(self.splits == SPLITS.index(split))


def open_labels(folder: Path | str, *, decimals: bool = False) -> LabelHoldings:
    """Read all of `folder/labels.parquet` (or .csv).

    Args:
        folder: the label party's folder.
        decimals: allow labels with decimals; `classes` are then the distinct numbers.
    """
    source = open_source(Path(folder), "labels")
    source.require("id", "label", "split")
    ids = read_ids(source)
    if len(ids) == 0:
        raise InputError(f"{source.path}: expected at least one row, found none")
    values = _column(source, "label")
    if source.is_csv:
        _refuse_strays(values, source, ids)
    if decimals:
        values = _with_decimals(values, source)
    elif source.is_csv:
        _refuse_decimals(values, source, ids)
    classes, labels = _labels(values, source, ids, decimals=decimals)
    splits = _splits(_column(source, "split"), source, ids)
    order = ids.order()
    return LabelHoldings(
        path=source.path,
        ids=Ids(ids.values.take(order)),
        classes=classes,
        labels=labels[order],
        splits=splits[order],
    )


def _column(source: Source, name: str) -> Column:
    values = pa.chunked_array([batch.column(0) for batch in source.batches([name])])
    kind = source.schema.field(name).type
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
    if is_text(values.type):
        values = values.cast(pa.large_string())
    return values.combine_chunks()


def _labels(
    values: Column, source: Source, ids: Ids, *, decimals: bool
) -> tuple[tuple[int | float | str, ...], NDArray[np.int64]]:
    _refuse(values.is_null(), source, "label", "have no label; leave these rows out", ids)
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int64())
    elif decimals and pa.types.is_float64(kind):
        _refuse(pc.invert(pc.is_finite(values)), source, "label", "have no finite label", ids)
    elif source.is_csv:
        is_number = pc.match_substring_regex(values, r"^-?[0-9]{1,18}$")
        if pc.all(is_number).as_py():
            values = values.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or is_text(kind)):
        raise InputError(f"{source.path}, column label: expected whole numbers or text, got {kind}")
    distinct = pc.unique(values)
    ordered = distinct.take(pc.sort_indices(distinct))
    codes: Column = pc.index_in(values, value_set=ordered)
    classes = tuple(value for value in ordered.to_pylist() if value is not None)
    return classes, np.asarray(codes.to_numpy(), dtype=np.int64)


def _refuse_strays(values: Column, source: Source, ids: Ids) -> None:
    """Refuse a `nan` among numbers: it would turn all of them into text classes."""
    is_number = pc.match_substring_regex(values, NUMBER)
    is_stray = pc.match_substring_regex(values, NO_NUMBER, ignore_case=True)
    if pc.any(is_number).as_py() and pc.all(pc.or_(is_number, is_stray)).as_py():
        _refuse(is_stray, source, "label", "are not a number; leave these rows out", ids)


def _refuse_decimals(values: Column, source: Source, ids: Ids) -> None:
    """Refuse numbers that cannot be classes; `1.0` can."""
    is_number = pc.match_substring_regex(values, NUMBER)
    if pc.all(is_number).as_py():
        is_class = pc.match_substring_regex(values, r"^-?[0-9]+(\.0*)?$")
        what = "have decimals and are not classes; set task to 'regression' or 'ranking'"
        _refuse(pc.invert(is_class), source, "label", what, ids)


def _with_decimals(values: Column, source: Source) -> Column:
    """Convert labels with decimals to numbers; leave whole numbers and text unchanged."""
    if pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    elif source.is_csv:
        is_number = pc.match_substring_regex(values, NUMBER)
        is_whole = pc.match_substring_regex(values, r"^-?[0-9]+$")
        if pc.all(is_number).as_py() and not pc.all(is_whole).as_py():
            values = values.cast(pa.float64())
    return values


def _splits(values: Column, source: Source, ids: Ids) -> NDArray[np.int8]:
    if not (is_text(values.type) or pa.types.is_integer(values.type)):
        raise InputError(
            f"{source.path}, column split: expected {', '.join(SPLITS)}, got {values.type}"
        )
    codes: Column = pc.index_in(values.cast(pa.string()), value_set=pa.array(SPLITS))
    wrong = codes.is_null()
    kinds = f"are none of {', '.join(SPLITS)}; leave out rows that belong to no split"
    _refuse(wrong, source, "split", kinds, ids)
    return np.asarray(codes.to_numpy(), dtype=np.int8)


def _refuse(offending: Column, source: Source, column: str, what: str, ids: Ids) -> None:
    rows = np.flatnonzero(offending.to_numpy(zero_copy_only=False))
    if len(rows):
        named = first_three(f"id {value}" for value in ids.take(rows[:3]))
        raise InputError(f"{source.path}, column {column}: {len(rows)} rows {what} ({named})")


def nodes_of_label_rows(data: DataHoldings, labels: LabelHoldings) -> NDArray[np.int64]:
    """Return the (num_labels,) node of each row; ids are compared as text, as in a run."""
    texts = tuple(map(str, labels.ids.values.to_pylist()))
    return data.ids.find_texts(texts)
