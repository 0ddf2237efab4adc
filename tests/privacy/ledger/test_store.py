"""Entries stay as they were written; an older or lost ledger is detected."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.errors import VesperError

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder


def test_entries_are_read_in_order(folder: "LedgerFolder") -> None:
    folder.with_entries().close()
    ledger = folder.open()
    assert [entry.sequence for entry in ledger.entries()] == [1, 2, 3]
    assert [entry.facts["k"] for entry in ledger.entries(after=1)] == [0, 1]
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_a_new_ledger_verifies(folder: "LedgerFolder") -> None:
    assert folder.open().verify() is None


def test_a_failed_transaction_leaves_nothing(folder: "LedgerFolder") -> None:
    ledger = folder.with_entries()

    def fail() -> None:
        with ledger.transaction():
            ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, encoded_receivers=b"A")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_the_file_itself_refuses_accidental_changes(folder: "LedgerFolder") -> None:
    ledger = folder.with_entries()
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


def test_the_error_of_a_read_only_ledger_says_that_nothing_was_released(
    folder: "LedgerFolder",
) -> None:
    ledger = folder.with_entries()
    ledger._db.execute("PRAGMA query_only = ON")  # as on a read-only or full disk
    with pytest.raises(VesperError, match="nothing was released"), ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, encoded_receivers=b"A")


# Lost and older ledgers.


def test_a_ledger_restored_from_an_older_copy_is_refused(folder: "LedgerFolder") -> None:
    ledger = folder.with_entries(entries=2)
    ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = folder.path.read_bytes()
    folder.append(ledger, cost=9)
    ledger.close()
    folder.path.write_bytes(old)
    with pytest.raises(VesperError, match="older than what was charged"):
        folder.open()
    assert folder.open_read_only().verify() is None
    assert "older than what was charged" in (folder.open_read_only().behind_head_note() or "")


def test_a_lost_ledger_is_not_replaced_by_a_new_one(folder: "LedgerFolder") -> None:
    folder.with_entries().close()
    folder.path.unlink()
    with pytest.raises(VesperError, match="older than what was charged"):
        folder.open()


def test_an_outdated_note_of_the_head_is_accepted(folder: "LedgerFolder") -> None:
    folder.with_entries(entries=2).close()
    note = folder.note.read_text()
    ledger = folder.open()
    folder.append(ledger, cost=9)
    ledger.close()
    folder.note.write_text(note)
    assert folder.open().head()[0] == 4


def test_a_full_disk_is_no_mistake_of_the_user(tmp_path: Path) -> None:
    """Files may not grow beyond a limit, as where the disk is full."""
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from vesper.errors import VesperError\n"
        "from vesper.privacy.ledger.store import Ledger\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    Ledger(Path(sys.argv[1]), clock=lambda: 0.0)\n"
        "except VesperError as error:\n"
        "    print(error.exit_code, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "ledger.sqlite")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("1 ")
    assert "free some space" in done.stdout
