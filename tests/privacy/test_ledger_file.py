import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger import Ledger
from vesper.privacy.ledger_file import FORMAT, open_to_read
from vesper.privacy.ledger_reader import LedgerReader


def opened(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.sqlite", clock=lambda: 12.5)


def shown(folder: Path) -> LedgerReader:
    return open_to_read(folder / "ledger.sqlite")


def written(folder: Path, entries: int = 2) -> Ledger:
    """A ledger with its key entry and so many more."""
    ledger = opened(folder)
    for k in range(entries):
        with ledger.transaction():
            ledger.append(graph="g", run="r", facts={"kind": "x", "k": k}, cost=k, who=b"A")
    return ledger


def raw(folder: Path) -> sqlite3.Connection:
    """Somebody else's connection: no settings of ours hold on it."""
    return sqlite3.connect(folder / "ledger.sqlite")


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("hello, I am no database, but I am long enough" * 50)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        opened(tmp_path)
    with pytest.raises(InputError, match="something else"):
        shown(tmp_path)
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


def test_another_format_is_refused_by_name(tmp_path: Path) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    for way in (opened, shown):
        with pytest.raises(InputError, match=f"found format {FORMAT + 1}"):
            way(tmp_path)


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


@pytest.mark.parametrize("left", ["closed", "open", "killed"])
def test_an_auditor_reads_without_the_right_to_write(left: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # tmp_path is closed to other users
        folder = Path(name)
        ledger = written(folder)
        if left == "killed":  # its log is still there, the shared memory of the log is not
            log = (folder / "ledger.sqlite-wal").read_bytes()
            main = (folder / "ledger.sqlite").read_bytes()
            ledger.close()
            (folder / "ledger.sqlite-wal").write_bytes(log)
            (folder / "ledger.sqlite").write_bytes(main)
        elif left == "closed":
            ledger.close()
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with without_the_right_to_write(folder):
            reader = open_to_read(folder / "ledger.sqlite")
            assert [entry.sequence for entry in reader.entries()] == [1, 2, 3]
            assert reader.verify() is None
            reader.close()
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        ledger.close()
