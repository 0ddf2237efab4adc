"""Entries stay as they were written, and a ledger that is older or lost is known."""

import sqlite3
from typing import TYPE_CHECKING

import pytest

from vesper.errors import VesperError

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder


def test_entries_come_back_in_order(folder: "LedgerFolder") -> None:
    folder.written().close()
    ledger = folder.opened()
    assert [entry.sequence for entry in ledger.entries()] == [1, 2, 3]
    assert [entry.facts["k"] for entry in ledger.entries(after=1)] == [0, 1]
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_a_new_ledger_verifies(folder: "LedgerFolder") -> None:
    assert folder.opened().verify() is None


def test_a_failed_transaction_leaves_nothing(folder: "LedgerFolder") -> None:
    ledger = folder.written()

    def fail() -> None:
        with ledger.transaction():
            ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, encoded_receivers=b"A")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_changes_by_mistake_are_refused_by_the_file_itself(folder: "LedgerFolder") -> None:
    ledger = folder.written()
    replace = "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE sequence = 2"
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        ledger._db.execute(replace)
    ledger.close()
    database = folder.raw()
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        database.execute("UPDATE entries SET cost = 0")
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        database.execute("DELETE FROM entries")
    database.close()


def test_a_ledger_that_cannot_be_written_says_that_nothing_was_released(
    folder: "LedgerFolder",
) -> None:
    ledger = folder.written()
    ledger._db.execute("PRAGMA query_only = ON")  # as on a read-only or full disk
    with pytest.raises(VesperError, match="nothing was released"), ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, encoded_receivers=b"A")


# Lost and older ledgers.


def test_a_ledger_put_back_from_an_older_copy_is_refused(folder: "LedgerFolder") -> None:
    ledger = folder.written(entries=2)
    ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = folder.path.read_bytes()
    folder.append(ledger, cost=9)
    ledger.close()
    folder.path.write_bytes(old)
    with pytest.raises(VesperError, match="older than what was charged"):
        folder.opened()
    assert folder.shown().verify() is None
    assert "older than what was charged" in (folder.shown().behind_head_note() or "")


def test_a_lost_ledger_is_not_started_anew(folder: "LedgerFolder") -> None:
    folder.written().close()
    folder.path.unlink()
    with pytest.raises(VesperError, match="older than what was charged"):
        folder.opened()


def test_a_note_that_lags_behind_is_no_fault(folder: "LedgerFolder") -> None:
    folder.written(entries=2).close()
    note = folder.note.read_text()
    ledger = folder.opened()
    folder.append(ledger, cost=9)
    ledger.close()
    folder.note.write_text(note)
    assert folder.opened().head()[0] == 4
