"""The neutral folder: `nodes.parquet` and `edges.parquet`, with labels inside the node table.

* `nodes.parquet`: `id`, `label` (null: unlabelled), `split` (train, val, test, none), and features:
  either numbers `f0..fk`, or one fixed-size list `x` of float32 or uint8. Other columns, such as
  `time` or where a node comes from, are no features and are left out.
* `edges.parquet`: `src`, `dst`, perhaps `time` and `amount`.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.datasets.loaders.feature_columns import FeatureColumns
from vesper.datasets.loaders.neutral_labels import read_labels
from vesper.datasets.loaders.offenders import Offenders
from vesper.datasets.loaders.parquet_rows import ParquetRows
from vesper.datasets.party_tables import EDGES, EDGES_AT_ONCE, NODES, write_labels, write_table
from vesper.errors import InputError, first_three
from vesper.progress import Progress

LAYOUT = "a folder with nodes.parquet (id, label, split, features) and edges.parquet (src, dst)"

_NODES_AT_ONCE = 1 << 16
_EDGE_EXTRAS = ("time", "amount")


def find(source: Path) -> Path | None:
    """The folder, when it has one of the two tables."""
    tables = (source / "nodes.parquet", source / "edges.parquet")
    return source if any(table.is_file() for table in tables) else None


def write(source: Path, folder: Path, progress: Progress) -> None:
    """Check both tables and write them as party folders, a batch at a time."""
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
        raise InputError(f"{nodes.path}: expected one row a node, found none; write it again")
    ids = np.concatenate(parts)
    distinct, counts = np.unique(ids, return_counts=True)
    repeated = distinct[counts > 1]
    if len(repeated):
        raise InputError(
            f"{nodes.path}, column id: expected every id once, found {len(repeated)} repeated "
            f"({first_three(repeated)}); keep one row an id"
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
    """Copy the edges; `ids` are sorted, and both ends of every edge must be among them."""
    extras = [name for name in _EDGE_EXTRAS if name in edges.schema.names]
    kept = [edges.schema.field(name) for name in extras]
    schema = pa.schema([pa.field("src", pa.int64()), pa.field("dst", pa.int64()), *kept])
    strangers = {
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
            for end, odd in strangers.items():
                values = edges.whole_numbers(batch, end, first=done)
                places = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
                unknown = values[ids[places] != values]
                odd.add(unknown, count=len(unknown))
                ends.append(pa.array(values))
            columns = [*ends, *(batch.column(name) for name in extras)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            done += batch.num_rows
            progress("edges", done, edges.num_rows)
        for odd in strangers.values():
            odd.refuse()

    write_table(folder / EDGES, schema, checked())
