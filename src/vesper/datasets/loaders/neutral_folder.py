"""The neutral folder: `nodes.parquet` and `edges.parquet`, with labels inside the node table.

* `nodes.parquet`: `id`, `label` (null: unlabelled), `split` (train, val, test, none), and features:
  either numbers `f0..fk`, or one fixed-size list `x` of float32 or uint8. Other columns, such as
  `time` or the origin of a node, are not features and are left out.
* `edges.parquet`: `src`, `dst`, optionally `time` and `amount`.

`FeatureColumns` finds the feature columns and checks their values; `read_labels` takes labels and
splits of the nodes that have both.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.datasets.loaders.row_readers import Offenders, ParquetRows
from vesper.datasets.party_tables import (
    EDGES,
    EDGES_AT_ONCE,
    LARGEST_LABEL,
    NODES,
    SPLITS,
    write_labels,
    write_table,
)
from vesper.errors import InputError, first_three
from vesper.progress import Progress

_NUMBERED = re.compile(r"f\d+")


class FeatureColumns:
    """Feature columns of a node table: the numbers `f0..fk`, or the one list `x`."""

    def __init__(self, nodes: ParquetRows) -> None:
        numbered = [name for name in nodes.schema.names if _NUMBERED.fullmatch(name)]
        if ("x" in nodes.schema.names) == bool(numbered):
            raise InputError(
                f"{nodes.path}: expected features either in f0..fk or in x, found "
                f"{'both' if numbered else 'neither'}; keep one of them"
            )
        self.names = sorted(numbered, key=lambda name: int(name[1:])) or ["x"]
        self.fields = [pa.field(name, _stored_type(nodes, name)) for name in self.names]
        self._odd = {
            name: Offenders(
                f"{nodes.path}, column {name}",
                "finite numbers in every row",
                "fill or drop these rows",
            )
            for name in self.names
        }

    def arrays(self, batch: pa.RecordBatch, ids: NDArray[np.int64]) -> list["pa.Array[Any]"]:
        """Return the feature columns of one batch, and record rows that are not finite."""
        arrays = []
        for field in self.fields:
            values = batch.column(field.name).cast(field.type)
            bad = np.flatnonzero(_is_bad(values))
            self._odd[field.name].add((f"id {ids[row]}" for row in bad), count=len(bad))
            arrays.append(values)
        return arrays

    def refuse(self) -> None:
        """Raise for the first column with rows that are not finite."""
        for odd in self._odd.values():
            odd.refuse()


def _is_bad(values: "pa.Array[Any]") -> NDArray[np.bool_]:
    """Return for each row whether it contains a null, a NaN or an infinity."""
    bad = np.array(values.is_null().to_numpy(zero_copy_only=False), bool)  # (rows,)
    present = values.drop_null()
    flat = present.flatten() if isinstance(present, pa.FixedSizeListArray) else present
    numbers = flat.to_numpy(zero_copy_only=False)  # a null inside a list becomes NaN
    if len(present):
        bad[~bad] = ~np.isfinite(numbers.reshape(len(present), -1)).all(axis=1)
    return bad


def _stored_type(nodes: ParquetRows, name: str) -> pa.DataType:
    """Return float32, or uint8 for lists of it: bags of words take a quarter of the space."""
    kind = nodes.schema.field(name).type
    stored: pa.DataType
    if name != "x" and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return pa.float32()
    if name == "x" and pa.types.is_fixed_size_list(kind):
        if pa.types.is_uint8(kind.value_type):
            stored = pa.list_(pa.uint8(), kind.list_size)
            return stored
        if pa.types.is_floating(kind.value_type):
            stored = pa.list_(pa.float32(), kind.list_size)
            return stored
    expected = "a fixed-size list of float32 or uint8" if name == "x" else "numbers"
    raise InputError(
        f"{nodes.path}, column {name}: expected {expected}, found {kind}; change its type"
    )


_LABELS_AT_ONCE = 1 << 16
_NO_SPLIT, _UNKNOWN = len(SPLITS), len(SPLITS) + 1
_POSITION = {"train": 0, "val": 1, "test": 2, "none": _NO_SPLIT, None: _NO_SPLIT}

Labels = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]


def read_labels(nodes: ParquetRows, ids: NDArray[np.int64]) -> Labels:
    """Return ids, labels and splits (positions in `SPLITS`) of the labelled nodes.

    Raises:
        InputError: A split has an unknown name, or a label is not a class number.
    """
    wrong_split = Offenders(
        f"{nodes.path}, column split", f"{', '.join(SPLITS)} or none", "rename these splits"
    )
    wrong_label = Offenders(
        f"{nodes.path}, column label",
        f"classes from 0 to {LARGEST_LABEL}",
        "number the classes from 0",
    )
    parts: list[Labels] = []
    done = 0
    for batch in nodes.batches(["label", "split"], _LABELS_AT_ONCE):
        rows = ids[done : done + batch.num_rows]
        done += batch.num_rows
        names = batch.column("split").to_pylist()
        splits = np.array([_POSITION.get(name, _UNKNOWN) for name in names])  # (rows,)
        unknown = np.flatnonzero(splits == _UNKNOWN)
        wrong_split.add((f"id {rows[k]}: {names[k]}" for k in unknown), count=len(unknown))
        is_labelled = batch.column("label").is_valid().to_numpy(zero_copy_only=False)
        keep = np.flatnonzero(is_labelled & (splits < _NO_SPLIT))
        labels = nodes.whole_numbers(batch.take(keep), "label", first=0)
        bad = np.flatnonzero((labels < 0) | (labels > LARGEST_LABEL))
        wrong_label.add((f"id {rows[keep[k]]}: {labels[k]}" for k in bad), count=len(bad))
        parts.append((rows[keep], labels.astype(np.int32), splits[keep].astype(np.int8)))
    wrong_split.refuse()
    wrong_label.refuse()
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


LAYOUT = "a folder with nodes.parquet (id, label, split, features) and edges.parquet (src, dst)"

_NODES_AT_ONCE = 1 << 16
_EDGE_EXTRAS = ("time", "amount")


def find(source: Path) -> Path | None:
    """Return the folder if it has at least one of the two tables."""
    tables = (source / "nodes.parquet", source / "edges.parquet")
    return source if any(table.is_file() for table in tables) else None


def write(source: Path, folder: Path, progress: Progress) -> None:
    """Check both tables and write them as party folders, batch by batch."""
    nodes = ParquetRows(source / "nodes.parquet", needed=("id", "label", "split"))
    edges = ParquetRows(source / "edges.parquet", needed=("src", "dst"))
    ids = _read_ids(nodes)
    write_labels(folder, *read_labels(nodes, ids))
    _write_nodes(nodes, folder, progress)
    _write_edges(edges, np.sort(ids), folder, progress)


def _read_ids(nodes: ParquetRows) -> NDArray[np.int64]:
    parts: list[NDArray[np.int64]] = []
    for batch in nodes.batches(["id"], _NODES_AT_ONCE):
        parts.append(nodes.whole_numbers(batch, "id", first=sum(map(len, parts))))
    if not parts:
        raise InputError(
            f"{nodes.path}: expected one row per node, found none; write the table again"
        )
    ids = np.concatenate(parts)
    distinct, counts = np.unique(ids, return_counts=True)
    repeated = distinct[counts > 1]
    if len(repeated):
        raise InputError(
            f"{nodes.path}, column id: expected distinct ids, found {len(repeated)} repeated "
            f"({first_three(repeated)}); keep one row per id"
        )
    return ids


def _write_nodes(nodes: ParquetRows, folder: Path, progress: Progress) -> None:
    features = FeatureColumns(nodes)
    schema = pa.schema([pa.field("id", pa.int64()), *features.fields])

    def checked() -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in nodes.batches(["id", *features.names], _NODES_AT_ONCE):
            ids = nodes.whole_numbers(batch, "id", first=done)
            columns = [pa.array(ids), *features.arrays(batch, ids)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            done += len(ids)
            progress("nodes", done, nodes.num_rows)
        features.refuse()

    write_table(folder / NODES, schema, checked())


def _write_edges(
    edges: ParquetRows, ids: NDArray[np.int64], folder: Path, progress: Progress
) -> None:
    """Copy the edges; both ends of every edge must be among the sorted `ids`."""
    extras = [name for name in _EDGE_EXTRAS if name in edges.schema.names]
    extra_fields = [edges.schema.field(name) for name in extras]
    schema = pa.schema([pa.field("src", pa.int64()), pa.field("dst", pa.int64()), *extra_fields])
    unknown_ends = {
        end: Offenders(
            f"{edges.path}, column {end}",
            "ids of nodes.parquet",
            "add these nodes or drop these rows",
        )
        for end in ("src", "dst")
    }

    def checked() -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in edges.batches(["src", "dst", *extras], EDGES_AT_ONCE):
            ends = []
            for end, odd in unknown_ends.items():
                values = edges.whole_numbers(batch, end, first=done)
                places = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
                unknown = values[ids[places] != values]
                odd.add(unknown, count=len(unknown))
                ends.append(pa.array(values))
            columns = [*ends, *(batch.column(name) for name in extras)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            done += batch.num_rows
            progress("edges", done, edges.num_rows)
        for odd in unknown_ends.values():
            odd.refuse()

    write_table(folder / EDGES, schema, checked())
