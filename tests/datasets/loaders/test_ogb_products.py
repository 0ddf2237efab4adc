"""A small folder in the official ogbn-products layout."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.convert import convert
from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.errors import InputError

FILES = {
    "raw/num-node-list.csv.gz": "4\n",
    "raw/num-edge-list.csv.gz": "3\n",
    "raw/node-feat.csv.gz": "0.5,-1.25\n1,2\n3,4\n-5,6e-1\n",
    "raw/node-label.csv.gz": "0\n46\n7\n0\n",
    "raw/edge.csv.gz": "0,1\n3,1\n2,3\n",
    "split/sales_ranking/train.csv.gz": "3\n",
    "split/sales_ranking/valid.csv.gz": "0\n",
    "split/sales_ranking/test.csv.gz": "1\n",
}


def products(folder: Path, **changes: str) -> Path:
    contents = FILES | changes
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.mark.parametrize("above", ["", "ogbn_products", "products"])
def test_official_layout(tmp_path: Path, above: str) -> None:
    products(tmp_path / "in" / above)
    reports: list[tuple[str, int, int]] = []
    convert(
        tmp_path / "in",
        tmp_path / "out",
        progress=lambda task, done, total, note="": reports.append((task, done, total)),
    )
    nodes = pq.read_table(tmp_path / "out" / NODES)
    assert nodes.column("id").to_pylist() == [0, 1, 2, 3]
    expected = np.array([[0.5, -1.25], [1, 2], [3, 4], [-5, 0.6]], np.float32)
    assert nodes.column("x").to_pylist() == expected.tolist()
    edges = pq.read_table(tmp_path / "out" / EDGES)
    assert edges.to_pydict() == {"src": [0, 3, 2], "dst": [1, 1, 3]}
    assert pq.read_table(tmp_path / "out" / LABELS).to_pydict() == {
        "id": [0, 1, 3],
        "label": [0, 46, 0],
        "split": ["val", "test", "train"],
    }
    assert reports == [("nodes", 4, 4), ("edges", 3, 3)]


BAD = {
    "raw/num-node-list.csv.gz": ("4\n5\n", "expected one number, found 2 lines"),
    "raw/num-edge-list.csv.gz": (
        "9\n",
        "expected 9 rows as stated in num-edge-list.csv.gz, found 3",
    ),
    "raw/node-feat.csv.gz": (
        "1,nan\n1,2\ninf,4\n5,6\n",
        r"expected finite numbers, found 2 others \(first 2: row 1, row 3\)",
    ),
    "raw/node-label.csv.gz": (
        "0\n-1\n2\n-3\n",
        r"expected classes from 0 to 2147483647, found 2 others \(first 2: row 2: -1, row 4: -3\)",
    ),
    "raw/edge.csv.gz": (
        "0,1\n3,4\n-1,3\n",
        r"expected node numbers below 4, found 2 others "
        r"\(first 2: row 2: \[3, 4\], row 3: \[-1, 3\]\)",
    ),
    "split/sales_ranking/train.csv.gz": (
        "3\n3\n",
        r"expected every node in one split only, once, found 1 others \(first 1: 3\)",
    ),
    "split/sales_ranking/valid.csv.gz": (
        "0\n3\n",
        r"expected every node in one split only, once, found 1 others \(first 1: 3\)",
    ),
    "split/sales_ranking/test.csv.gz": (
        "1\n4\n",
        r"expected node numbers below 4, found 1 others \(first 1: 4\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    products(tmp_path / "in", **{name: text})
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "in", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("name", FILES)
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    products(tmp_path / "in")
    (tmp_path / "in" / name).unlink()
    with pytest.raises(InputError, match="expected this file, found none") as caught:
        convert(tmp_path / "in", tmp_path / "out")
    assert str(tmp_path / "in" / name) in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_too_few_feature_rows_are_refused(tmp_path: Path) -> None:
    products(tmp_path / "in", **{"raw/node-feat.csv.gz": "1,2\n"})
    with pytest.raises(InputError, match=r"expected 4 rows as stated in num-node-list\.csv\.gz"):
        convert(tmp_path / "in", tmp_path / "out")
