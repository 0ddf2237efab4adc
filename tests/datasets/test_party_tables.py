"""Tables contain what was written, one row group per block."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vesper.datasets.party_tables import (
    EDGES,
    LABELS,
    NODES,
    edges_of_keys,
    write_edges,
    write_labels,
    write_table,
    write_vectors,
)


def test_vectors(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    write_vectors(tmp_path, [x[:3], x[3:]], width=3)
    table = pq.read_table(tmp_path / NODES)
    assert table.schema.equals(
        pa.schema([pa.field("id", pa.int64()), pa.field("x", pa.list_(pa.float32(), 3))])
    )
    assert table.column("id").to_pylist() == [0, 1, 2, 3]
    assert table.column("x").to_pylist() == x.tolist()
    assert pq.ParquetFile(tmp_path / NODES).num_row_groups == 2


def test_edges_of_keys(tmp_path: Path) -> None:
    keys = np.array([0 * 5 + 3, 1 * 5 + 2, 3 * 5 + 4])
    write_edges(tmp_path, edges_of_keys(keys, 5))
    table = pq.read_table(tmp_path / EDGES)
    assert table.to_pydict() == {"src": [0, 1, 3], "dst": [3, 2, 4]}
    assert table.schema.types == [pa.int64(), pa.int64()]


def test_labels(tmp_path: Path) -> None:
    write_labels(
        tmp_path,
        np.array([4, 7, 9]),
        np.array([1, 0, 1], np.int32),
        np.array([2, 0, 1], np.int8),
    )
    table = pq.read_table(tmp_path / LABELS)
    assert table.to_pydict() == {
        "id": [4, 7, 9],
        "label": [1, 0, 1],
        "split": ["test", "train", "val"],
    }
    assert table.schema.types == [pa.int64(), pa.int32(), pa.string()]


def test_a_table_without_batches_still_has_its_columns(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("src", pa.int64()), pa.field("dst", pa.int64())])
    write_table(tmp_path / "deep" / "empty.parquet", schema, [])
    assert pq.read_table(tmp_path / "deep" / "empty.parquet").schema.equals(schema)
