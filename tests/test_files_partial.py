"""Partial folders: removed at the end, and left alone while their writer runs."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vesper.files import partial_folder, remove_abandoned

WRITE_AND_WAIT = """
import sys, time
from pathlib import Path
from vesper.files import partial_folder
with partial_folder(Path(sys.argv[1]), "partial-") as folder:
    (folder / "half").write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def writer(parent: Path) -> "subprocess.Popen[str]":
    """Start another process that is writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE_AND_WAIT, str(parent)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def test_what_is_left_at_the_end_is_removed(tmp_path: Path) -> None:
    with partial_folder(tmp_path, "partial-") as folder:
        (folder / "kept").write_text("whole")
        (folder / "kept").rename(tmp_path / "kept")
        (folder / "left").write_text("half")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_an_error_removes_everything(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), partial_folder(tmp_path, "partial-"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_removal_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.unlink, []

    def unlink(*values: Any, **named: Any) -> None:
        calls.append(values)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(*values, **named)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt), partial_folder(tmp_path, "partial-") as folder:
        (folder / "left").write_text("half")
    assert list(tmp_path.iterdir()) == []


def test_the_whole_folder_may_be_moved_away(tmp_path: Path) -> None:
    with partial_folder(tmp_path, "partial-") as folder:
        folder.rename(tmp_path / "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_folders_of_others_stay_while_they_write_and_go_when_they_are_killed(
    tmp_path: Path,
) -> None:
    with writer(tmp_path) as other:
        (theirs,) = tmp_path.iterdir()
        with partial_folder(tmp_path, "partial-") as ours:
            assert theirs.is_dir()
            assert ours != theirs
        other.kill()
    assert theirs.is_dir()
    remove_abandoned(tmp_path, "partial-")
    assert list(tmp_path.iterdir()) == []


def test_only_folders_with_the_prefix_are_removed(tmp_path: Path) -> None:
    for name in ("partial-folder", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "partial-file").write_text("a file")
    (tmp_path / "partial-link").symlink_to(tmp_path / "mine")
    remove_abandoned(tmp_path, "partial-")
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "partial-file", "partial-link"}


def test_a_missing_parent_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"), partial_folder(tmp_path / "no", "partial-"):
        pass
