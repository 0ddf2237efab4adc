"""A file is replaced as a whole, or stays unchanged; what a killed process left is removed."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vesper.files import remove_abandoned_files, replace_file, replacement_of

WRITE_AND_WAIT = """
import sys, time
from pathlib import Path
from vesper.files import replacement_of
with replacement_of(Path(sys.argv[1])) as file:
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


@contextmanager
def writer(path: Path) -> Iterator[Path]:
    """Write in another process, which is killed in the end; yield its partial file."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_AND_WAIT, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        (partial,) = path.parent.glob(f"{path.name}.*.partial")
        yield partial
        process.kill()


def test_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "value"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "value"
    replace_file(path, b"one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "value"
    replace_file(path, b"one")
    with pytest.raises(KeyboardInterrupt), replacement_of(path):
        raise KeyboardInterrupt
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_grows_too_large_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "value"
    replace_file(path, b"one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            replace_file(path, b"x" * (1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_goes_at_the_next_write_and_never_earlier(
    tmp_path: Path,
) -> None:
    path = tmp_path / "value"
    with writer(path) as partial:
        replace_file(path, b"one")
        assert partial.exists()
    assert partial.exists()
    replace_file(tmp_path / "other", b"other")
    assert partial.exists()
    replace_file(path, b"two")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "value"]


def test_at_a_start_everything_abandoned_in_a_folder_goes(tmp_path: Path) -> None:
    with writer(tmp_path / "b") as running:
        for name in ("value.123.partial", "value.0a1b2c3d.partial", "film.mkv.partial"):
            (tmp_path / name).write_bytes(b"half")
        (tmp_path / "folder.1.partial").mkdir()
        (tmp_path / "link.1.partial").symlink_to(tmp_path / "value")
        (tmp_path / "value").write_bytes(b"whole")
        remove_abandoned_files(tmp_path)
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {
            running.name,
            "film.mkv.partial",
            "folder.1.partial",
            "link.1.partial",
            "value",
        }
    remove_abandoned_files(tmp_path / "missing")


def test_only_replacements_of_the_same_name_are_removed(tmp_path: Path) -> None:
    for name in ("a.b.1.partial", "a.1.partial", "aa.1.partial", "a.partial"):
        (tmp_path / name).write_bytes(b"half")
    remove_abandoned_files(tmp_path, "a")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"a.b.1.partial", "aa.1.partial", "a.partial"}
