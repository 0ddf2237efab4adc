"""Both files are complete or absent; nothing is overwritten."""

import errno
import itertools
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError, VesperError
from vesper.export import release_file
from vesper.export.release_file import new_export_file
from vesper.graph.ids import Ids

IDS = Ids(pa.array(["a", "b", "c"], type=pa.large_string()))
COLUMNS = {"hop1_0": np.array([1.0, 2.0, 3.0], dtype=np.float32)}


def write(out: Path) -> None:
    with new_export_file(out) as target:
        target.write(IDS, COLUMNS, statement_for=lambda sha256: f"statement of {sha256}")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_table_and_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_file, "ROWS", 2)
    write(tmp_path / "new" / "r.parquet")
    assert names(tmp_path / "new") == {"r.parquet", "r.statement.json"}
    table = pq.read_table(tmp_path / "new" / "r.parquet")
    assert table.to_pydict() == {"id": ["a", "b", "c"], "hop1_0": [1.0, 2.0, 3.0]}


def test_the_size_does_not_depend_on_values(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    with new_export_file(tmp_path / "b.parquet") as target:
        zeros = {"hop1_0": np.zeros(3, dtype=np.float32)}
        target.write(IDS, zeros, statement_for=lambda sha256: "")
    sizes = {(tmp_path / name).stat().st_size for name in ("a.parquet", "b.parquet")}
    assert len(sizes) == 1


@pytest.mark.parametrize("existing", ["r.parquet", "r.statement.json"])
def test_nothing_is_overwritten(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("precious")
    with pytest.raises(InputError, match="already exists and will not be overwritten"):
        write(tmp_path / "r.parquet")
    assert (tmp_path / existing).read_text() == "precious"
    assert names(tmp_path) == {existing}


@pytest.mark.parametrize("late", ["r.parquet", "r.statement.json"])
def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path, late: str) -> None:
    with new_export_file(tmp_path / "r.parquet") as target:
        (tmp_path / late).write_text("precious")
        with pytest.raises(VesperError, match="cannot be written"):
            target.write(IDS, COLUMNS, statement_for=lambda sha256: "statement")
    assert names(tmp_path) == {late}
    assert (tmp_path / late).read_text() == "precious"


@pytest.mark.parametrize(("syncs", "left"), [(1, set()), (2, set()), (3, set()), (4, "both")])
def test_ctrl_c_leaves_both_files_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: int, left: object
) -> None:
    real, count = os.fsync, itertools.count(1)

    def fsync(descriptor: int) -> None:
        if next(count) == syncs:
            raise KeyboardInterrupt
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "r.parquet")
    assert names(tmp_path) == ({"r.parquet", "r.statement.json"} if left == "both" else set())


def test_file_systems_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path / "r.parquet")
    assert names(tmp_path) == {"r.parquet", "r.statement.json"}


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(sha256: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        pytest.raises(VesperError, match=r"No space left.*stays charged"),
        new_export_file(tmp_path / "r.parquet") as target,
    ):
        target.write(IDS, COLUMNS, statement_for=fail)
    assert names(tmp_path) == set()


def test_another_suffix_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.parquet, got 'r.csv'"):
        write(tmp_path / "r.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "file" / "r.parquet")
