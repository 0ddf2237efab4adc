"""A small version of the pair of .npz files of Reddit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.convert import convert
from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.errors import InputError

DATA: dict[str, Any] = {
    "feature": np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]]),
    "label": np.array([40, 0, 7]),
    "node_types": np.array([1, 3, 2], np.uint8),
    "node_ids": np.array(["t3_a", "t3_b", "t3_c"], dtype=object),  # never read
}
GRAPH: dict[str, Any] = {
    "row": np.array([0, 1, 2, 1], np.int32),
    "col": np.array([1, 0, 1, 2], np.int64),
    "data": np.ones(4),
    "shape": np.array([3, 3]),
    "format": np.array(b"coo"),
}


def reddit(folder: Path, data: dict[str, Any], graph: dict[str, Any]) -> Path:
    folder.mkdir()
    np.savez(folder / "reddit_data.npz", **data)
    np.savez_compressed(folder / "reddit_graph.npz", **graph)
    return folder


def test_both_directions_become_one_edge(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    convert(
        reddit(tmp_path / "in", DATA, GRAPH),
        tmp_path / "out",
        progress=lambda task, done, total, note="": reports.append((task, done, total)),
    )
    nodes = pq.read_table(tmp_path / "out" / NODES)
    assert nodes.column("id").to_pylist() == [0, 1, 2]
    assert nodes.column("x").to_pylist() == DATA["feature"].tolist()
    edges = pq.read_table(tmp_path / "out" / EDGES)
    assert edges.to_pydict() == {"src": [0, 1], "dst": [1, 2]}
    assert pq.read_table(tmp_path / "out" / LABELS).to_pydict() == {
        "id": [0, 1, 2],
        "label": [40, 0, 7],
        "split": ["train", "test", "val"],
    }
    assert reports == [("nodes", 3, 3), ("edges", 4, 4)]


BAD = {
    "feature": (
        np.array([[np.nan, 1], [1, 2], [1, 1e300]]),
        r"array 'feature': expected finite numbers, found 2 others \(first 2: node 0, node 2\)",
    ),
    "label": (
        np.array([0, -1, 2]),
        r"array 'label': expected classes from 0 to 2147483647, found 1 others "
        r"\(first 1: node 1: -1\)",
    ),
    "node_types": (
        np.array([1, 0, 4]),
        r"array 'node_types': expected 1, 2 or 3 \(train, val, test\), found 2 others "
        r"\(first 2: node 1: 0, node 2: 4\)",
    ),
    "row": (
        np.array([0, 3, 2, -1]),
        r"arrays 'row', 'col': expected nodes below 3, found 2 others "
        r"\(first 2: \(3, 0\), \(-1, 2\)\)",
    ),
    "shape": (np.array([4, 4]), r"array 'shape': expected 3 by 3"),
}
WRONG_KIND = {
    "feature": (np.array([1.0, 2.0, 3.0]), r"array 'feature': expected a matrix, found shape"),
    "label": (np.array([0.0, 1.0, 2.0]), "array 'label': expected whole numbers, found float64"),
    "node_types": (np.array([1, 2]), r"array 'node_types': expected one number per node, \(3,\)"),
    "row": (np.array([0, 1]), r"expected 'row' and 'col' of equal length, found \(2,\) and \(4,\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_refused(tmp_path: Path, name: str) -> None:
    array, message = BAD[name]
    _refused(tmp_path, name, array, message)


@pytest.mark.parametrize("name", WRONG_KIND)
def test_wrong_kinds_of_arrays_are_refused(tmp_path: Path, name: str) -> None:
    array, message = WRONG_KIND[name]
    _refused(tmp_path, name, array, message)


def test_another_sparse_format_is_refused(tmp_path: Path) -> None:
    graph = {"indices": GRAPH["col"], "indptr": np.array([0, 1, 3, 4]), "shape": GRAPH["shape"]}
    source = reddit(tmp_path / "in", DATA, graph)
    with pytest.raises(InputError, match="expected an array 'row', found indices, indptr, shape"):
        convert(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_text_features_are_refused(tmp_path: Path) -> None:
    words = np.array([["a"], ["b"], ["c"]])
    _refused(tmp_path, "feature", words, "array 'feature': expected numbers, found <U1")


def _refused(tmp_path: Path, name: str, array: Any, message: str) -> None:
    data = DATA | ({name: array} if name in DATA else {})
    graph = GRAPH | ({name: array} if name in GRAPH else {})
    with pytest.raises(InputError, match=message):
        convert(reddit(tmp_path / "in", data, graph), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("name", ["reddit_data.npz", "reddit_graph.npz"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    source = reddit(tmp_path / "in", DATA, GRAPH)
    (source / name).unlink()
    with pytest.raises(InputError, match="expected this file, found none") as caught:
        convert(source, tmp_path / "out")
    assert str(source / name) in str(caught.value)
    assert not (tmp_path / "out").exists()
