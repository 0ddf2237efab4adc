"""Files that are not a ledger, and ledgers opened read-only."""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.ledger_file import FORMAT, default_ledger, open_to_read
from vesper.privacy.ledger.store import Ledger

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder


def test_files_that_are_not_a_ledger_are_refused(folder: "LedgerFolder", tmp_path: Path) -> None:
    folder.path.write_text("not a database, but long enough to be one" * 50)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        folder.open()
    with pytest.raises(InputError, match="something else"):
        folder.open_read_only()
    with pytest.raises(InputError, match="expected a ledger, found no file"):
        open_to_read(tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        Ledger(tmp_path / "no" / "folder.sqlite", clock=lambda: 0.0)
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(InputError, match="found an empty file"):
        open_to_read(tmp_path / "empty.sqlite")
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 200)
    with pytest.raises(InputError, match=r"cannot be (read|used) as a ledger"):
        open_to_read(tmp_path / "cut.sqlite")


def test_other_databases_are_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE entries (x)")
    database.commit()
    database.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="something else"):
        Ledger(path, clock=lambda: 0.0)
    with pytest.raises(InputError, match="something else"):
        open_to_read(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_another_format_is_refused_and_named(folder: "LedgerFolder", other: int) -> None:
    folder.with_entries().close()
    database = folder.raw()
    database.execute(f"PRAGMA user_version = {other}")
    database.close()
    before = folder.path.read_bytes()
    for open_ledger in (folder.open, folder.open_read_only):
        with pytest.raises(InputError, match=f"found format {other}; .* stays spent"):
            open_ledger()
    assert folder.path.read_bytes() == before


def test_the_default_ledger_is_one_per_user_and_its_folder_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_ledger() == tmp_path / "state" / "vesper" / "ledger.sqlite"
    Ledger(default_ledger(), clock=lambda: 0.0).close()
    assert default_ledger().parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_ledger() == tmp_path / "home/.local/state/vesper/ledger.sqlite"


@contextmanager
def without_write_permission(folder: Path) -> Iterator[None]:
    """Remove write permission; as root, which ignores mode bits, also switch to another user."""
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError):
            (folder / "new").touch()
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_only_this_user_can_read_a_new_ledger_and_modes_of_an_old_one_stay(
    folder: "LedgerFolder",
) -> None:
    before = os.umask(0)
    try:
        ledger = folder.with_entries()
        names = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.sqlite.key")
        modes = {name: (folder.path.parent / name).stat().st_mode & 0o777 for name in names}
        assert set(modes.values()) == {0o600}, modes
        ledger.close()
        folder.path.chmod(0o640)  # the owner lets a group read it
        folder.open().close()
        assert folder.path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@pytest.mark.parametrize("left", ["closed", "open", "killed"])
def test_an_auditor_reads_without_write_permission(
    left: str, folder_at: "Callable[[Path], LedgerFolder]"
) -> None:
    with tempfile.TemporaryDirectory() as name:  # other users cannot enter tmp_path
        root = Path(name)
        folder = folder_at(root)
        ledger = folder.with_entries()
        if left == "killed":  # its -wal file is still there, its -shm file is not
            log = (root / "ledger.sqlite-wal").read_bytes()
            main = folder.path.read_bytes()
            ledger.close()
            (root / "ledger.sqlite-wal").write_bytes(log)
            folder.path.write_bytes(main)
        elif left == "closed":
            ledger.close()
        before = {path.name: path.read_bytes() for path in root.iterdir()}
        with without_write_permission(root):
            reader = folder.open_read_only()
            assert [entry.sequence for entry in reader.entries()] == [1, 2, 3]
            assert reader.verify() is None
            reader.close()
        assert {path.name: path.read_bytes() for path in root.iterdir()} == before
        ledger.close()
