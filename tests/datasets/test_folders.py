"""A new folder is whole or absent, whatever interrupts its writer."""

import os
from pathlib import Path

import pytest

from vesper.datasets.folders import new_folder
from vesper.errors import InputError, VesperError


def fill(out: Path) -> None:
    with new_folder(out) as folder:
        for part in ("data", "label"):
            (folder / part).mkdir()
            (folder / part / "table").write_text(part)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


WHOLE = ["data", "data/table", "label", "label/table"]


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    fill(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == WHOLE
    assert names(tmp_path / "a") == ["b", *(f"b/{name}" for name in WHOLE)]


def test_everything_is_on_disk_before_it_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        events.append("in place")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    fill(tmp_path / "a" / "b")
    before = events[: events.index("in place")]
    assert sorted(before)[1:] == ["data", "label", "table", "table"]  # the first: the folder itself
    assert events[-1] == "a"


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path: Path) -> None:
    out = tmp_path / "mount"
    out.mkdir()
    before = out.stat().st_ino
    fill(out)
    assert out.stat().st_ino == before
    assert names(tmp_path) == ["mount", *(f"mount/{name}" for name in WHOLE)]


def test_the_current_folder_can_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Path())
    assert names(Path.cwd()) == WHOLE


def test_a_link_to_an_empty_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    fill(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == WHOLE


@pytest.mark.parametrize("what", ["file", "full folder", "dangling link"])
def test_existing_content_is_never_touched(tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    if what == "file":
        out.write_text("mine")
    elif what == "full folder":
        out.mkdir()
        (out / "mine").write_text("mine")
    else:
        out.symlink_to("nowhere")
    before = names(tmp_path)
    with pytest.raises(InputError, match="expected a new or empty folder, found existing content"):
        fill(out)
    assert names(tmp_path) == before


def test_a_path_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"cannot be written .*; choose another folder"):
        fill(tmp_path / "file" / "out")


def stop_writing(out: Path, error: BaseException) -> None:
    with new_folder(out) as folder:
        (folder / "data").mkdir()
        raise error


@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_is_a_failed_run_and_leaves_nothing(tmp_path: Path, exists: bool) -> None:
    out = tmp_path / "out"
    if exists:
        out.mkdir()
    full = OSError(28, "No space left on device")
    with pytest.raises(VesperError, match=r"cannot be written \(No space left on device") as caught:
        stop_writing(out, full)
    assert caught.value.exit_code == 1
    assert names(tmp_path) == (["out"] if exists else [])


def test_running_out_of_memory_is_a_failed_run_too(tmp_path: Path) -> None:
    with pytest.raises(VesperError, match="not enough memory") as caught:
        stop_writing(tmp_path / "out", MemoryError())
    assert caught.value.exit_code == 1
    assert names(tmp_path) == []


@pytest.mark.parametrize("exists", [False, True])
def test_ctrl_c_leaves_nothing(tmp_path: Path, exists: bool) -> None:
    out = tmp_path / "out"
    if exists:
        out.mkdir()
    with pytest.raises(KeyboardInterrupt):
        stop_writing(out, KeyboardInterrupt())
    assert names(tmp_path) == (["out"] if exists else [])


def test_moving_into_an_existing_folder_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, moved = Path.replace, []

    def fill_up(path: Path, target: Path) -> Path:
        moved.append(path)
        if len(moved) == 2:
            raise OSError(28, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fill_up)
    with pytest.raises(VesperError, match="No space left on device"):
        fill(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("leftover", ["out/.partial-killed", ".out.partial-killed"])
def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path, leftover: str) -> None:
    (tmp_path / leftover / "data").mkdir(parents=True)
    fill(tmp_path / "out")
    assert names(tmp_path) == ["out", *(f"out/{name}" for name in WHOLE)]


def test_the_result_of_another_process_is_never_replaced(tmp_path: Path) -> None:
    def race() -> None:
        with new_folder(tmp_path / "out") as folder:
            (folder / "data").mkdir()
            fill(tmp_path / "out")  # another process is faster

    with pytest.raises(VesperError, match="cannot be written"):
        race()
    assert names(tmp_path / "out") == WHOLE
