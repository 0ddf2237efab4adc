"""A neutral folder becomes party folders; each kind of bad row has a clear error."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.convert import convert
from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.errors import InputError


def nodes(**changes: Any) -> dict[str, Any]:
    """Five nodes: one unlabelled, one without a split."""
    columns: dict[str, Any] = {
        "id": pa.array([10, 11, 12, 13, 14]),
        "label": pa.array([0, 1, None, 1, 0], pa.int32()),
        "split": pa.array(["train", "val", "none", "test", "none"]).dictionary_encode(),
        "time": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "f1": pa.array([1, 2, 3, 4, 5], pa.float32()),
        "f0": pa.array([5, 4, 3, 2, 1], pa.float32()),
    }
    columns.update(changes)
    return {name: column for name, column in columns.items() if column is not None}


def edges(**changes: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {"src": pa.array([10, 11, 10]), "dst": pa.array([11, 14, 10])}
    return columns | changes


def folder(path: Path, node_table: dict[str, Any], edge_table: dict[str, Any]) -> Path:
    path.mkdir()
    pq.write_table(pa.table(node_table), path / "nodes.parquet")
    pq.write_table(pa.table(edge_table), path / "edges.parquet")
    return path


def test_numbered_features(tmp_path: Path) -> None:
    convert(folder(tmp_path / "in", nodes(), edges()), tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / NODES).to_pydict() == {
        "id": [10, 11, 12, 13, 14],
        "f0": [5, 4, 3, 2, 1],
        "f1": [1, 2, 3, 4, 5],
    }
    assert pq.read_table(tmp_path / "out" / LABELS).to_pydict() == {
        "id": [10, 11, 13],
        "label": [0, 1, 1],
        "split": ["train", "val", "test"],
    }
    assert pq.read_table(tmp_path / "out" / EDGES).to_pydict() == {
        "src": [10, 11, 10],
        "dst": [11, 14, 10],
    }


@pytest.mark.parametrize("kind", [pa.uint8(), pa.float32()])
def test_one_list_of_features_keeps_its_type(tmp_path: Path, kind: pa.DataType) -> None:
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(10) % 2).cast(kind), 2)
    table = nodes(x=x, f0=None, f1=None, school=pa.array([1, 1, 2, 2, 2], pa.int8()))
    convert(folder(tmp_path / "in", table, edges()), tmp_path / "out")
    written = pq.read_table(tmp_path / "out" / NODES)
    assert written.column_names == ["id", "x"]
    assert written.schema.field("x").type == pa.list_(kind, 2)
    assert written.column("x").to_pylist() == [[0, 1]] * 5


def test_time_and_amount_of_edges_are_copied(tmp_path: Path) -> None:
    extra = edges(
        time=pa.array([7, 8, 9], pa.int32()),
        amount=pa.array([1.5, 2.5, None], pa.float32()),
        note=pa.array(["a", "b", "c"]),
    )
    convert(folder(tmp_path / "in", nodes(), extra), tmp_path / "out")
    written = pq.read_table(tmp_path / "out" / EDGES)
    assert written.column_names == ["src", "dst", "time", "amount"]
    assert written.column("amount").to_pylist() == [1.5, 2.5, None]


def test_no_edges_and_no_labels_are_allowed(tmp_path: Path) -> None:
    no_ids = pa.array([], pa.int64())
    table = nodes(label=pa.nulls(5, pa.int32()))
    convert(folder(tmp_path / "in", table, {"src": no_ids, "dst": no_ids}), tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / LABELS).num_rows == 0
    assert pq.read_table(tmp_path / "out" / EDGES).num_rows == 0


BAD_NODES = {
    "repeated id": (
        nodes(id=pa.array([10, 11, 10, 11, 12])),
        r"column id: expected distinct ids, found 2 repeated \(first 2: 10, 11\)",
    ),
    "empty id": (
        nodes(id=pa.array([10, None, 12, 13, None])),
        r"column id: expected a number in every row, found 2 empty \(first 2: row 2, row 5\)",
    ),
    "text id": (nodes(id=pa.array(list("abcde"))), "column id: expected whole numbers, found str"),
    "no label column": (nodes(label=None), "expected the columns id, label, split; label missing"),
    "not finite": (
        nodes(f1=pa.array([float("nan"), None, 0, 1, 2])),
        r"column f1: expected finite numbers in every row, found 2 others",
    ),
    "odd split": (nodes(split=pa.array(["dev"] * 5)), "column split: expected train, val, test"),
    "no rows": (
        {name: column[:0] for name, column in nodes().items()},
        "expected one row per node, found none",
    ),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_bad_node_tables_are_refused(tmp_path: Path, case: str) -> None:
    table, message = BAD_NODES[case]
    source = folder(tmp_path / "in", table, edges())
    with pytest.raises(InputError, match=message) as caught:
        convert(source, tmp_path / "out")
    assert str(source / "nodes.parquet") in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


BAD_EDGES = {
    "unknown ids": (
        edges(dst=pa.array([99, 11, 98])),
        r"column dst: expected ids of nodes.parquet, found 2 others \(first 2: 99, 98\)",
    ),
    "empty end": (
        edges(src=pa.array([10, None, 11])),
        r"column src: expected a number in every row, found 1 empty \(first 1: row 2\)",
    ),
    "misnamed": (
        {"source": pa.array([10]), "dst": pa.array([11])},
        "expected the columns src, dst; src missing, found source, dst",
    ),
    "floats": (edges(src=pa.array([1.0, 2.0, 3.0])), "column src: expected whole numbers"),
}


@pytest.mark.parametrize("case", BAD_EDGES)
def test_bad_edge_tables_are_refused(tmp_path: Path, case: str) -> None:
    table, message = BAD_EDGES[case]
    source = folder(tmp_path / "in", nodes(), table)
    with pytest.raises(InputError, match=message) as caught:
        convert(source, tmp_path / "out")
    assert str(source / "edges.parquet") in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_missing_and_mislabelled_files_are_refused(tmp_path: Path) -> None:
    source = folder(tmp_path / "in", nodes(), edges())
    (source / "edges.parquet").write_text("src,dst\n1,2\n")
    with pytest.raises(InputError, match=r"edges\.parquet: not a readable Parquet file"):
        convert(source, tmp_path / "out")
    (source / "edges.parquet").unlink()
    with pytest.raises(InputError, match=r"edges\.parquet: expected this file, found none"):
        convert(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
