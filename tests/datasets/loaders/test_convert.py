"""Layouts are recognised, unknown ones are refused, and the public folders are converted."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.convert import convert
from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.errors import InputError

SHARED = Path(__file__).parents[3].parent / "shared" / "data"
FOLDERS = sorted(path.parent.name for path in SHARED.glob("*/meta.json"))


def test_an_unknown_layout_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(10):
        (tmp_path / "in" / f"file{number}.txt").touch()
    with pytest.raises(InputError) as caught:
        convert(tmp_path / "in", tmp_path / "out")
    message = str(caught.value)
    assert "file0.txt, file1.txt" in message
    assert "and 2 more" in message
    for known in ("nodes.parquet", "raw/edge.csv.gz", "reddit_data.npz"):
        assert known in message
    assert not (tmp_path / "out").exists()


def test_no_folder_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a folder, found none"):
        convert(tmp_path / "absent", tmp_path / "out")
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match="found nothing; pass one of"):
        convert(tmp_path / "in", tmp_path / "out")


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "nodes.parquet").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    with pytest.raises(InputError, match="expected a new or empty folder"):
        convert(tmp_path / "in", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious"]


@pytest.mark.skipif(not FOLDERS, reason="the public data folder ../shared/data is missing")
@pytest.mark.parametrize("name", FOLDERS or ["none"])
def test_public_folders_are_converted_completely(tmp_path: Path, name: str) -> None:
    stats = json.loads((SHARED / name / "meta.json").read_text())["stats"]
    convert(SHARED / name, tmp_path / "out")
    nodes = pq.ParquetFile(tmp_path / "out" / NODES)
    schema = nodes.schema_arrow
    assert nodes.metadata.num_rows == stats["nodes"]
    widths = [
        field.type.list_size if field.name == "x" else 1 for field in schema if field.name != "id"
    ]
    assert sum(widths) == stats["features"]
    assert pq.ParquetFile(tmp_path / "out" / EDGES).metadata.num_rows == stats.get(
        "edge_rows", stats["edges_undirected"]
    )
    labels = pq.read_table(tmp_path / "out" / LABELS)
    assert labels.num_rows == stats["nodes"] - stats.get("unlabelled", 0)
    assert len(labels.column("label").unique()) == stats["classes"]
    counted = labels.column("split").value_counts()
    splits = {entry["values"].as_py(): entry["counts"].as_py() for entry in counted}
    expected = {split: count for split, count in stats["split_counts"].items() if split != "none"}
    assert splits == expected


@pytest.mark.skipif("amlsim_20k" not in FOLDERS, reason="../shared/data/amlsim_20k is missing")
def test_transfers_keep_time_and_amount(tmp_path: Path) -> None:
    convert(SHARED / "amlsim_20k", tmp_path / "out")
    given = pq.read_table(SHARED / "amlsim_20k" / "edges.parquet")
    written = pq.read_table(tmp_path / "out" / EDGES)
    assert written.equals(given.select(["src", "dst", "time", "amount"]))
