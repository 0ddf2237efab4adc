"""Files that are no ledger, and ledgers that may only be read."""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.ledger_file import FORMAT, open_to_read
from vesper.privacy.ledger.store import Ledger

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder


def test_files_that_are_no_ledger(folder: "LedgerFolder", tmp_path: Path) -> None:
    folder.path.write_text("hello, I am no database, but I am long enough" * 50)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        folder.opened()
    with pytest.raises(InputError, match="something else"):
        folder.shown()
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


def test_other_databases_are_not_touched(tmp_path: Path) -> None:
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


def test_another_format_is_refused_by_name(folder: "LedgerFolder", tmp_path: Path) -> None:
    folder.written().close()
    database = folder.raw()
    database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    for way in (folder.opened, folder.shown):
        with pytest.raises(InputError, match=f"found format {FORMAT + 1}"):
            way()


@contextmanager
def without_the_right_to_write(folder: Path) -> Iterator[None]:
    """Take the rights away; root has them whatever the bits say, so be somebody else."""
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


def test_a_new_ledger_is_for_this_user_alone_and_an_old_one_stays_as_it_is(
    folder: "LedgerFolder",
) -> None:
    before = os.umask(0)
    try:
        ledger = folder.written()
        names = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.sqlite.key")
        modes = {name: (folder.path.parent / name).stat().st_mode & 0o777 for name in names}
        assert set(modes.values()) == {0o600}, modes
        ledger.close()
        folder.path.chmod(0o640)  # a group may read it, as its owner wishes
        folder.opened().close()
        assert folder.path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@pytest.mark.parametrize("left", ["closed", "open", "killed"])
def test_an_auditor_reads_without_the_right_to_write(
    left: str, folder_at: "Callable[[Path], LedgerFolder]"
) -> None:
    with tempfile.TemporaryDirectory() as name:  # tmp_path is closed to other users
        root = Path(name)
        folder = folder_at(root)
        ledger = folder.written()
        if left == "killed":  # its log is still there, the shared memory of the log is not
            log = (root / "ledger.sqlite-wal").read_bytes()
            main = folder.path.read_bytes()
            ledger.close()
            (root / "ledger.sqlite-wal").write_bytes(log)
            folder.path.write_bytes(main)
        elif left == "closed":
            ledger.close()
        before = {path.name: path.read_bytes() for path in root.iterdir()}
        with without_the_right_to_write(root):
            reader = folder.shown()
            assert [entry.sequence for entry in reader.entries()] == [1, 2, 3]
            assert reader.verify() is None
            reader.close()
        assert {path.name: path.read_bytes() for path in root.iterdir()} == before
        ledger.close()
