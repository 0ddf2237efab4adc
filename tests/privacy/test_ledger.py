import sqlite3
from pathlib import Path

import pytest

from vesper.errors import InputError, VesperError
from vesper.privacy.key import key_of, key_path
from vesper.privacy.ledger import Ledger


def opened(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.sqlite", clock=lambda: 12.5)


def shown(folder: Path) -> Ledger:
    """As the budget verbs open it: to look, not to charge."""
    return Ledger(folder / "ledger.sqlite", clock=lambda: 0.0, must_exist=True)


def written(folder: Path, entries: int = 3) -> Ledger:
    ledger = opened(folder)
    for k in range(entries):
        with ledger.transaction():
            ledger.append(graph="g", run="r", facts={"kind": "x", "k": k}, cost=k, who=b"A")
    return ledger


def raw(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "ledger.sqlite")


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path).close()
    ledger = opened(tmp_path)
    assert [entry.sequence for entry in ledger.entries()] == [1, 2, 3]
    assert [entry.facts["k"] for entry in ledger.entries(after=1)] == [1, 2]
    assert ledger.head()[0] == 3
    assert ledger.verify() is None


def test_an_empty_ledger_verifies(tmp_path: Path) -> None:
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


def test_changes_are_refused_by_the_file_itself(tmp_path: Path) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        database.execute("UPDATE entries SET cost = 0")
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        database.execute("DELETE FROM entries")
    database.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("time", 1.0),
        ("graph", "x"),
        ("run", "x"),
        ("facts", "{}"),
        ("cost", 0),
        ("receivers", b"B"),
        ("digest", b"x"),
    ],
)
@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_tampering_with_any_column_of_any_row_is_detected(
    tmp_path: Path, column: str, value: object, sequence: int
) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    database.execute("DROP TRIGGER entries_stay")
    changed = database.execute(
        f"UPDATE entries SET {column} = ? WHERE sequence = ? AND {column} <> ?",
        (value, sequence, value),
    ).rowcount
    database.commit()
    database.close()
    assert shown(tmp_path).verify() == (sequence if changed else None)
    assert changed or (column, sequence) == ("cost", 1)


@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_removing_any_row_is_detected_the_last_one_too(tmp_path: Path, sequence: int) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    database.execute("DROP TRIGGER entries_last")
    database.execute("DELETE FROM entries WHERE sequence = ?", (sequence,))
    database.commit()
    database.close()
    assert shown(tmp_path).verify() == sequence


def test_exchanging_two_rows_is_detected(tmp_path: Path) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    database.execute("DROP TRIGGER entries_stay")
    for before, after in ((2, 99), (3, 2), (99, 3)):
        database.execute("UPDATE entries SET sequence = ? WHERE sequence = ?", (after, before))
    database.commit()
    database.close()
    assert shown(tmp_path).verify() == 2


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("hello, I am no database, but I am long enough" * 50)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        opened(tmp_path)
    with pytest.raises(InputError, match="expected a ledger, found no file"):
        Ledger(tmp_path / "none.sqlite", clock=lambda: 0.0, must_exist=True)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        Ledger(tmp_path / "no" / "folder.sqlite", clock=lambda: 0.0)


def test_a_ledger_that_cannot_be_written_says_that_nothing_was_released(tmp_path: Path) -> None:
    ledger = written(tmp_path)
    ledger._db.execute("PRAGMA query_only = ON")  # as on a read-only or full disk
    with pytest.raises(VesperError, match="nothing was released"), ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=1, who=b"A")


def test_the_key_is_made_once_and_kept_apart(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    key = key_of(ledger)
    assert len(key) == 32
    assert key_of(ledger) == key
    assert key_of(opened(tmp_path)) == key
    assert key_path(ledger).stat().st_mode & 0o777 == 0o600
    ledger.close()
    assert key not in (tmp_path / "ledger.sqlite").read_bytes()


def test_a_lost_or_exchanged_key_is_refused(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    key_of(ledger)
    key_path(ledger).write_bytes(bytes(32))
    with pytest.raises(InputError, match="not the key"):
        key_of(ledger)
    key_path(ledger).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        key_of(ledger)


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
    assert opened(tmp_path).head()[0] == 3


def test_other_databases_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE entries (x)")
    database.commit()
    database.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="something else"):
        Ledger(path, clock=lambda: 0.0)
    assert path.read_bytes() == before
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(InputError, match="something else"):
        Ledger(tmp_path / "empty.sqlite", clock=lambda: 0.0, must_exist=True)
