"""Tampering, with every right to the files but without the key."""

import hashlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.privacy.key import derived, key_path
from vesper.privacy.ledger import Ledger
from vesper.privacy.ledger_file import open_to_read
from vesper.privacy.ledger_reader import LedgerReader, chained, parsed_head, shown_head


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


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("time", 1.0),
        ("graph", "x"),
        ("run", "x"),
        ("facts", "{}"),
        ("cost", 0.5),
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
    database.execute(f"UPDATE entries SET {column} = ? WHERE sequence = ?", (value, sequence))
    database.commit()
    database.close()
    assert shown(tmp_path).verify() == sequence


def test_insert_or_replace_goes_around_the_triggers_and_is_detected(tmp_path: Path) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    columns = "sequence, time, graph, run, facts, cost, receivers, digest"
    cheaper = columns.replace("cost", "cost / 2")
    database.execute(
        f"INSERT OR REPLACE INTO entries ({columns}) SELECT {cheaper} FROM entries "
        "WHERE sequence = 3"
    )
    database.commit()
    assert database.execute("SELECT cost FROM entries WHERE sequence = 3").fetchone() == (0.5,)
    database.close()
    assert shown(tmp_path).verify() == 3


@pytest.mark.parametrize("guess", [b"", bytes(32)])
def test_who_has_no_key_cannot_forge_even_with_head_and_note(tmp_path: Path, guess: bytes) -> None:
    written(tmp_path).close()
    database = raw(tmp_path)
    database.execute("DROP TRIGGER entries_stay")
    database.execute("UPDATE entries SET cost = 0 WHERE sequence = 3")
    columns = "sequence, time, graph, run, facts, cost, receivers"
    lines = database.execute(f"SELECT {columns} FROM entries ORDER BY sequence").fetchall()
    forged = database.execute("SELECT digest FROM entries WHERE sequence = 2").fetchone()[0]
    if guess:
        forged = chained(guess, forged, lines[2])
    else:  # as a chain without a key would be
        forged = hashlib.sha256(forged + repr(lines[2]).encode()).digest()
    database.execute("UPDATE entries SET digest = ? WHERE sequence = 3", (forged,))
    database.execute("UPDATE head SET digest = ?", (forged,))
    database.commit()
    database.close()
    (tmp_path / "ledger.sqlite.head").write_text(shown_head((3, forged)))
    ledger = shown(tmp_path)
    assert ledger.behind_its_note() is None
    assert ledger.verify() == 3


def test_who_has_the_key_can_forge_so_that_the_test_above_can_fail(tmp_path: Path) -> None:
    written(tmp_path).close()
    key = derived(key_path(tmp_path / "ledger.sqlite").read_bytes()).chain
    database = raw(tmp_path)
    database.execute("DROP TRIGGER entries_stay")
    database.execute("UPDATE entries SET cost = 0 WHERE sequence = 3")
    columns = "sequence, time, graph, run, facts, cost, receivers"
    line = database.execute(f"SELECT {columns} FROM entries WHERE sequence = 3").fetchone()
    before = database.execute("SELECT digest FROM entries WHERE sequence = 2").fetchone()[0]
    forged = chained(key, before, line)
    database.execute("UPDATE entries SET digest = ? WHERE sequence = 3", (forged,))
    database.execute("UPDATE head SET digest = ?", (forged,))
    database.commit()
    database.close()
    assert shown(tmp_path).verify() is None


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


def test_an_older_copy_of_the_whole_folder_is_known_by_a_head_noted_elsewhere(
    tmp_path: Path,
) -> None:
    folder, copy = tmp_path / "now", tmp_path / "copy"
    folder.mkdir()
    ledger = written(folder)
    early = shown_head(ledger.head())
    ledger.close()
    shutil.copytree(folder, copy)
    ledger = opened(folder)
    with ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=9, who=b"A")
    noted = shown_head(ledger.head())[: len("4:") + 16]
    assert ledger.contains(*parsed_head(early))
    ledger.close()
    assert shown(folder).contains(*parsed_head(noted))

    restored = shown(copy)
    assert restored.verify() is None  # whole in itself,
    assert restored.behind_its_note() is None  # and its note is as old:
    assert not restored.contains(*parsed_head(noted))  # only the head noted elsewhere tells
    assert restored.contains(*parsed_head(early))


@pytest.mark.parametrize(
    "text", ["", "3", "3:", "3:abc", "x:" + "0" * 64, "3:" + "g" * 16, "-1:00"]
)
def test_heads_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="SEQUENCE:DIGEST"):
        parsed_head(text)


def test_broken_facts_are_named(tmp_path: Path) -> None:
    written(tmp_path).close()
    for broken in ("{", "[]", '{"no": "kind"}', '{"kind": 3}'):
        database = raw(tmp_path)
        database.execute("DROP TRIGGER IF EXISTS entries_stay")
        database.execute("UPDATE entries SET facts = ? WHERE sequence = 2", (broken,))
        database.commit()
        database.close()
        with pytest.raises(InputError, match="entry 2: expected facts"):
            list(shown(tmp_path).entries())
        assert shown(tmp_path).verify() == 2


def test_what_is_written_while_it_is_verified_is_no_tampering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, reader = written(tmp_path), shown(tmp_path)
    pending = [1]

    def interrupted(key: bytes, previous: bytes, line: tuple[object, ...]) -> bytes:
        while pending:
            with ledger.transaction():
                ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=pending.pop(), who=b"A")
        return chained(key, previous, line)

    monkeypatch.setattr("vesper.privacy.ledger_reader.chained", interrupted)
    assert reader.verify() is None
    assert reader.verify() is None
    assert reader.head()[0] == 4
