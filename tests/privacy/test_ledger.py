import sqlite3
from pathlib import Path

import pytest

from vesper.errors import VesperError
from vesper.privacy.ledger import Ledger
from vesper.privacy.ledger_file import open_to_read
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


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path).close()
    ledger = opened(tmp_path)
    assert [entry.sequence for entry in ledger.entries()] == [1, 2, 3]
    assert [entry.facts["k"] for entry in ledger.entries(after=1)] == [0, 1]
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_a_new_ledger_verifies(tmp_path: Path) -> None:
    assert opened(tmp_path).verify() is None


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    ledger = written(tmp_path)

    def fail() -> None:
        with ledger.transaction():
            ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, who=b"A")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_changes_by_mistake_are_refused_by_the_file_itself(tmp_path: Path) -> None:
    ledger = written(tmp_path)
    replace = "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE sequence = 2"
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        ledger._db.execute(replace)
    ledger.close()
    database = raw(tmp_path)
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        database.execute("UPDATE entries SET cost = 0")
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        database.execute("DELETE FROM entries")
    database.close()


def test_a_ledger_that_cannot_be_written_says_that_nothing_was_released(tmp_path: Path) -> None:
    ledger = written(tmp_path)
    ledger._db.execute("PRAGMA query_only = ON")  # as on a read-only or full disk
    with pytest.raises(VesperError, match="nothing was released"), ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, who=b"A")


# Lost and older ledgers.


def test_a_ledger_put_back_from_an_older_copy_is_refused(tmp_path: Path) -> None:
    ledger = written(tmp_path, entries=2)
    ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = (tmp_path / "ledger.sqlite").read_bytes()
    with ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=9, who=b"A")
    ledger.close()
    (tmp_path / "ledger.sqlite").write_bytes(old)
    with pytest.raises(VesperError, match="older than what was charged"):
        opened(tmp_path)
    assert shown(tmp_path).verify() is None
    assert "older than what was charged" in (shown(tmp_path).behind_its_note() or "")


def test_a_lost_ledger_is_not_started_anew(tmp_path: Path) -> None:
    written(tmp_path).close()
    (tmp_path / "ledger.sqlite").unlink()
    with pytest.raises(VesperError, match="older than what was charged"):
        opened(tmp_path)


def test_a_note_that_lags_behind_is_no_fault(tmp_path: Path) -> None:
    written(tmp_path, entries=2).close()
    note = (tmp_path / "ledger.sqlite.head").read_text()
    ledger = opened(tmp_path)
    with ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=9, who=b"A")
    ledger.close()
    (tmp_path / "ledger.sqlite.head").write_text(note)
    assert opened(tmp_path).head()[0] == 4
