"""Data sets come from the user's folders or from simulators."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.study.sets import KNOWN, DatasetSource, find_sources, make_folders


def test_without_data_everything_is_simulated() -> None:
    sources = find_sources(["products", "finance"], data=None, small=True)
    assert str(sources["finance"]) == "simulated, 20,000 nodes"
    assert sources["finance"].paper_settings["width"] == 64
    full = find_sources(["finance"], data=None, small=False)["finance"]
    assert (full.num_nodes, full.paper_settings["width"]) == (1_132_511, 256)


def test_a_folder_of_the_user_takes_precedence(tmp_path: Path) -> None:
    (tmp_path / "reddit").mkdir()
    sources = find_sources(["reddit", "finance"], data=tmp_path, small=False)
    assert str(sources["reddit"]) == f"folder {tmp_path / 'reddit'}"
    assert str(sources["finance"]).startswith("simulated")


@pytest.mark.parametrize(
    ("names", "data", "message"),
    [
        (["finance"], "missing", "expected a folder with one folder per data set, found none"),
        (["finance"], ".", "expected a folder for at least one of finance, found none"),
        (["finanse"], None, "unknown data set 'finanse'.*did you mean 'finance'"),
    ],
)
def test_mistakes_are_reported(
    tmp_path: Path, names: list[str], data: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        find_sources(names, data=None if data is None else tmp_path / data, small=True)


def test_a_data_set_is_simulated_once(tmp_path: Path) -> None:
    source = DatasetSource(name="reddit", num_nodes=150)
    folder = make_folders(source, tmp_path)
    labels = folder / "label" / "labels.parquet"
    assert pq.read_metadata(labels).num_rows == 150
    before = labels.stat().st_mtime_ns
    assert make_folders(source, tmp_path) == folder
    assert labels.stat().st_mtime_ns == before


def test_party_folders_are_used_as_they_are_and_others_are_converted(tmp_path: Path) -> None:
    (tmp_path / "own" / "data").mkdir(parents=True)
    own = DatasetSource(name="own", folder=tmp_path / "own")
    assert make_folders(own, tmp_path / "work") == tmp_path / "own"
    neutral = tmp_path / "neutral"
    neutral.mkdir()
    nodes = {"id": [0, 1], "label": pa.array([0, 1], pa.int32()), "split": ["train", "val"]}
    pq.write_table(pa.table({**nodes, "f0": [0.5, 1.5]}), neutral / "nodes.parquet")
    pq.write_table(pa.table({"src": [0], "dst": [1]}), neutral / "edges.parquet")
    folder = make_folders(DatasetSource(name="n", folder=neutral), tmp_path / "work")
    assert (folder, (folder / "data").is_dir()) == (tmp_path / "work" / "n", True)


def test_small_data_sets_are_much_smaller() -> None:
    for known in KNOWN.values():
        assert known.small_nodes < known.num_nodes / 10
