"""Writers for the three tables of a pair of party folders, batch by batch.

| file | columns |
| --- | --- |
| `data/nodes.parquet` | `id`, and features: one fixed-size list `x`, or `f0..fk` |
| `data/edges.parquet` | `src`, `dst`, optionally `time`, `amount` |
| `label/labels.parquet` | `id`, `label`, `split` |
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

NODES = Path("data", "nodes.parquet")
EDGES = Path("data", "edges.parquet")
LABELS = Path("label", "labels.parquet")

EDGES_AT_ONCE = 1 << 21

SPLITS = ("train", "val", "test")
LARGEST_LABEL = 2**31 - 1

_EDGE_SCHEMA = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
_LABEL_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "label": pa.int32(),
    "split": pa.string(),
}
_LABEL_SCHEMA = pa.schema(_LABEL_COLUMNS)


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write `batches`, one row group each; one batch is in memory at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=False,
        column_encoding={
            field.name: "DELTA_BINARY_PACKED" for field in schema if field.type == pa.int64()
        },
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_vectors(folder: Path, rows: Iterable[NDArray[np.float32]], *, width: int) -> None:
    """Write the nodes 0, 1, 2, ... with their features, in blocks of shape `(rows, width)`."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("x", pa.list_(pa.float32(), width))])

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for x in rows:
            ids = pa.array(np.arange(first, first + len(x)))
            lists = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), width)
            yield pa.RecordBatch.from_arrays([ids, lists], schema=schema)
            first += len(x)

    write_table(folder / NODES, schema, batches())


def write_edges(folder: Path, pairs: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
    """Write edges, one pair of arrays (src, dst) at a time."""
    write_table(
        folder / EDGES,
        _EDGE_SCHEMA,
        (
            pa.RecordBatch.from_arrays([pa.array(src), pa.array(dst)], schema=_EDGE_SCHEMA)
            for src, dst in pairs
        ),
    )


def edges_of_keys(
    keys: NDArray[np.int64], num_nodes: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split keys `u * num_nodes + v` into pairs (u, v), `EDGES_AT_ONCE` at a time."""
    for first in range(0, len(keys), EDGES_AT_ONCE):
        src, dst = np.divmod(keys[first : first + EDGES_AT_ONCE], num_nodes)
        yield src, dst


def write_labels(
    folder: Path,
    ids: NDArray[np.int64],
    labels: NDArray[np.int32],
    splits: NDArray[np.int8],
) -> None:
    """Write one row per labelled node; `splits` are positions in `SPLITS`."""
    names = pa.DictionaryArray.from_arrays(splits, pa.array(SPLITS)).cast(pa.string())
    batch = pa.RecordBatch.from_arrays(
        [pa.array(ids), pa.array(labels), names], schema=_LABEL_SCHEMA
    )
    write_table(folder / LABELS, _LABEL_SCHEMA, [batch])
