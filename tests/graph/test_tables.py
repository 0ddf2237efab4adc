"""Party folders in: what is read, and one clear message for everything that is wrong."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.graph.holdings import CACHE, open_data
from vesper.graph.labels import open_labels
from vesper.graph.relation import edges_of
from vesper.graph.summary import summarize

Columns = dict[str, object]

NODES: Columns = {"id": [10, 20, 30], "age": [1.0, 2.0, 3.0], "score": [0.5, 0.25, 0.125]}
EDGES: Columns = {"src": [10, 20, 30, 10], "dst": [20, 10, 30, 30]}
LABELS: Columns = {"id": [10, 30], "label": [1, 0], "split": ["train", "test"]}


def folder(root: Path, *, kind: str = "parquet", **tables: Columns) -> Path:
    """Write data/ and label/ below `root`; tables given replace the good ones."""
    for name, part, columns in (
        ("nodes", "data", NODES),
        ("edges", "data", EDGES),
        ("labels", "label", LABELS),
    ):
        (root / part).mkdir(exist_ok=True, parents=True)
        table = pa.table(tables.get(name, columns))
        path = root / part / f"{name}.{kind}"
        if kind == "csv":
            pa_csv.write_csv(table, path)
        else:
            pq.write_table(table, path)
    return root


def refused(root: Path) -> str:
    """Open everything; give the one message."""
    with pytest.raises(InputError) as caught:
        summarize(open_data(root / "data"), open_labels(root / "label"))
    assert not list((root / "data").glob(f"{CACHE}/partial-*")), "something was left half written"
    return str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_good_folder(tmp_path: Path, kind: str) -> None:
    data = open_data(folder(tmp_path, kind=kind) / "data")
    labels = open_labels(tmp_path / "label")
    assert data.ids.values.to_pylist() == [10, 20, 30]
    assert data.features.tolist() == [[1.0, 0.5], [2.0, 0.25], [3.0, 0.125]]
    assert list(edges_of(data.graph)) == [(0, 1), (0, 2)]
    assert (data.counts.self_loops, data.counts.merged) == (1, 1)
    assert labels.classes == (0, 1)
    assert labels.labels.tolist() == [1, 0]
    assert labels.rows("test").tolist() == [1]
    summary = summarize(data, labels)
    assert (summary.nodes, summary.edges, summary.isolated) == (3, 2, 0)
    assert summary.self_loops_dropped == summary.duplicates_merged == 1


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_text_ids(tmp_path: Path, kind: str) -> None:
    tables: dict[str, Columns] = {
        "nodes": {"id": ["007", "7", "ann"], "age": [1.0, 2.0, 3.0]},
        "edges": {"src": ["007", "7"], "dst": ["ann", "ann"]},
        "labels": {"id": ["ann"], "label": ["risky"], "split": ["train"]},
    }
    root = folder(tmp_path, kind=kind, **tables)
    data, labels = open_data(root / "data"), open_labels(root / "label")
    assert data.ids.values.to_pylist() == ["007", "7", "ann"]
    assert list(edges_of(data.graph)) == [(0, 2), (1, 2)]
    assert labels.classes == ("risky",)
    assert summarize(data, labels).edges == 2


def test_far_apart_ids_and_lists_of_bytes(tmp_path: Path) -> None:
    x = pa.FixedSizeListArray.from_arrays(pa.array([0, 1, 1, 0, 1, 1], type=pa.uint8()), 2)
    ids = [2**62, -5, 17]
    root = folder(
        tmp_path,
        nodes={"id": ids, "x": x},
        edges={"src": [17, 2**62], "dst": [-5, 17]},
        labels={"id": [-5], "label": [0], "split": ["val"]},
    )
    data = open_data(root / "data")
    assert data.features.dtype == np.uint8
    assert data.features.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert list(edges_of(data.graph)) == [(0, 2), (1, 2)]


def test_a_second_open_reads_the_cache_and_changed_tables_do_not(tmp_path: Path) -> None:
    root = folder(tmp_path)
    seen: list[str] = []

    def progress(task: str, done: int, total: int) -> None:
        seen.append(task)

    open_data(root / "data", progress=progress)
    assert "placing edges" in seen
    seen.clear()
    again = open_data(root / "data", progress=progress)
    assert seen == []
    assert list(edges_of(again.graph)) == [(0, 1), (0, 2)]
    folder(tmp_path, edges={"src": [20], "dst": [30]})
    assert list(edges_of(open_data(root / "data").graph)) == [(1, 2)]
    assert len(list((root / "data" / CACHE).iterdir())) == 1


def test_the_graph_is_frozen(tmp_path: Path) -> None:
    graph = open_data(folder(tmp_path) / "data").graph
    with pytest.raises(ValueError, match="read-only"):
        graph.neighbors[0] = 2


BAD_TABLES: list[tuple[str, dict[str, Columns], str]] = [
    (
        "missing column",
        {"edges": {"source": [10], "dst": [20]}},
        r"edges\.\w+: expected a column 'src', found 'source', 'dst'; rename 'source' to 'src'",
    ),
    ("no id column", {"nodes": {"key": [1], "f": [0.0]}}, r"nodes\.\w+: expected a column 'id'"),
    (
        "duplicate id",
        {"nodes": {"id": [1, 1, 2, 2], "f": [0.0] * 4}},
        r"nodes\.\w+, column id: 2 ids stand on more than one row \(first 2: 1, 2\)",
    ),
    (
        "unknown endpoint",
        {"edges": {"src": [10, 77], "dst": [20, 20]}},
        r"edges\.\w+, column src: 1 rows name an id that is no node \(first 1: 77\)",
    ),
    (
        "NaN feature",
        {"nodes": {**NODES, "age": [1.0, float("nan"), float("inf")]}},
        r"nodes\.\w+, column age: 2 values are missing, NaN or infinite \(first 2: id 20, id 30\)",
    ),
    (
        "label for an unknown node",
        {"labels": {"id": [10, 99], "label": [0, 1], "split": ["train", "val"]}},
        r"column id: 1 rows label an id that is no node \(first 1: 99\)",
    ),
    (
        "unknown split",
        {"labels": {"id": [10], "label": [0], "split": ["dev"]}},
        r"labels\.\w+, column split: 1 rows are none of train, val, test \(first 1: id 10\)",
    ),
    (
        "labels in the data party's table",
        {"nodes": {**NODES, "label": [0, 1, 0]}},
        r"nodes\.\w+, column label: expected features only",
    ),
]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(("what", "tables", "message"), BAD_TABLES, ids=[b[0] for b in BAD_TABLES])
def test_bad_tables(
    tmp_path: Path, kind: str, what: str, tables: dict[str, Columns], message: str
) -> None:
    assert re.search(message, refused(folder(tmp_path, kind=kind, **tables)))


def test_missing_values(tmp_path: Path) -> None:
    root = folder(tmp_path, nodes={"id": [10, None, 30], "f": [0.0, 1.0, 2.0]})
    assert "column id: 1 rows have no id (first 1: row 2)" in refused(root)
    assert not (root / "data" / CACHE).exists()
    root = folder(tmp_path, nodes={**NODES, "age": [1.0, None, 3.0]})
    assert "column age: 1 values are missing" in refused(root)
    root = folder(tmp_path, edges={"src": [10, None], "dst": [20, 20]})
    assert "column src: 1 rows have no id (first 1: row 2)" in refused(root)
    root = folder(
        tmp_path, labels={"id": [10], "label": pa.array([None], pa.int64()), "split": ["val"]}
    )
    assert "column label: 1 rows have no label" in refused(root)


def test_features_that_are_no_numbers(tmp_path: Path) -> None:
    root = folder(tmp_path / "a", nodes={**NODES, "age": ["young", "old", "old"]})
    assert "column age: expected numbers or a fixed-size list of numbers, got string" in refused(
        root
    )
    root = folder(tmp_path / "b", kind="csv", nodes={**NODES, "age": ["1", "old", "3"]})
    assert "column age: 1 values are not numbers (first 1: 'old') (first 1: id 20)" in refused(root)
    root = folder(tmp_path / "c", nodes={**NODES, "age": [1.0, 1e300, 2.0]})
    assert "column age: 1 values are missing, NaN or infinite (first 1: id 20)" in refused(root)


def test_ids_of_two_kinds(tmp_path: Path) -> None:
    root = folder(tmp_path / "a", edges={"src": ["10"], "dst": ["20"]})
    assert "column src: expected whole numbers like the node ids, got text" in refused(root)
    root = folder(tmp_path / "b", kind="csv", edges={"src": ["x10"], "dst": ["20"]})
    assert "column src: 1 rows name an id that is no node (first 1: x10)" in refused(root)
    root = folder(tmp_path / "c", nodes={"id": [0.5, 1.5, 2.5], "f": [0.0] * 3})
    assert "column id: expected whole numbers or text as ids, got double" in refused(root)


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    root = folder(tmp_path / "a")
    (root / "data" / "edges.parquet").write_text("src,dst\n10,20\n")
    assert "edges.parquet: the name says Parquet, the content is something else" in refused(root)
    root = folder(tmp_path / "b", kind="csv")
    pq.write_table(pa.table(EDGES), root / "data" / "edges.csv")
    assert "edges.csv: the name says CSV, the content is binary" in refused(root)
    root = folder(tmp_path / "c")
    whole = (root / "data" / "nodes.parquet").read_bytes()
    (root / "data" / "nodes.parquet").write_bytes(whole[: len(whole) // 2])
    assert "nodes.parquet: not a readable Parquet file" in refused(root)


def test_empty_files_and_empty_tables(tmp_path: Path) -> None:
    root = folder(tmp_path / "a", kind="csv")
    (root / "data" / "edges.csv").write_bytes(b"")
    assert "edges.csv: the file is empty" in refused(root)
    none = pa.array([], type=pa.int64())
    root = folder(tmp_path / "b", nodes={"id": none, "f": none}, edges={"src": none, "dst": none})
    assert "nodes.parquet: expected at least one row, found none" in refused(root)


def test_csv_that_is_not_utf8_names_its_lines(tmp_path: Path) -> None:
    root = folder(tmp_path, kind="csv")
    (root / "data" / "nodes.csv").write_bytes(b"id,f\nann,1\nM\xfcller,2\nZo\xeb,3\n")
    message = refused(root)
    assert "nodes.csv: 2 lines are not UTF-8 text (first 2: line 3, line 4)" in message


def test_missing_files_and_two_of_them(tmp_path: Path) -> None:
    root = folder(tmp_path)
    pa_csv.write_csv(pa.table(EDGES), root / "data" / "edges.csv")
    assert "found both edges.parquet and edges.csv; keep one" in refused(root)
    for name in ("edges.csv", "edges.parquet"):
        (root / "data" / name).unlink()
    assert "expected edges.parquet or edges.csv, found 'nodes.parquet'" in refused(root)
    with pytest.raises(InputError, match="expected a folder"):
        open_data(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_written_is_opened_without_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", refuse)
    data = open_data(root / "data")
    assert list(edges_of(data.graph)) == [(0, 1), (0, 2)]
    assert not (root / "data" / CACHE).exists()
