"""Tampering with full access to the files, but without the key, is detected."""

import hashlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.keys import derive_keys, key_path
from vesper.privacy.ledger.reader import chain_digest, format_head, parse_head

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

Tamper = Callable[..., None]


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
    folder: "LedgerFolder", tamper: Tamper, column: str, value: object, sequence: int
) -> None:
    folder.with_entries().close()
    tamper(folder.path, f"UPDATE entries SET {column} = ? WHERE sequence = ?", value, sequence)
    assert folder.open_read_only().verify() == sequence


def test_insert_or_replace_bypasses_the_triggers_and_is_detected(folder: "LedgerFolder") -> None:
    folder.with_entries().close()
    database = folder.raw()
    columns = "sequence, time, graph, run, facts, cost, receivers, digest"
    cheaper = columns.replace("cost", "cost / 2")
    database.execute(
        f"INSERT OR REPLACE INTO entries ({columns}) SELECT {cheaper} FROM entries "
        "WHERE sequence = 3"
    )
    database.commit()
    assert database.execute("SELECT cost FROM entries WHERE sequence = 3").fetchone() == (0.5,)
    database.close()
    assert folder.open_read_only().verify() == 3


def forge(folder: "LedgerFolder", tamper: Tamper, chain: Callable[..., bytes]) -> bytes:
    """Set the cost of the last entry to 0, and its digest and the head to the result of `chain`."""
    tamper(folder.path, "UPDATE entries SET cost = 0 WHERE sequence = 3")
    database = folder.raw()
    columns = "sequence, time, graph, run, facts, cost, receivers"
    line = database.execute(f"SELECT {columns} FROM entries WHERE sequence = 3").fetchone()
    before = database.execute("SELECT digest FROM entries WHERE sequence = 2").fetchone()[0]
    database.close()
    forged = chain(before, line)
    tamper(folder.path, "UPDATE entries SET digest = ? WHERE sequence = 3", forged)
    tamper(folder.path, "UPDATE head SET digest = ?", forged)
    return forged


@pytest.mark.parametrize("guess", [b"", bytes(32)])
def test_without_the_key_nobody_can_forge_even_with_head_and_note(
    folder: "LedgerFolder", tamper: Tamper, guess: bytes
) -> None:
    def chain(before: bytes, line: tuple[object, ...]) -> bytes:
        if guess:
            return chain_digest(guess, before, line)
        return hashlib.sha256(before + repr(line).encode()).digest()  # a chain without a key

    folder.with_entries().close()
    folder.note.write_text(format_head((3, forge(folder, tamper, chain))))
    ledger = folder.open_read_only()
    assert ledger.behind_head_note() is None
    assert ledger.verify() == 3


def test_with_the_key_forging_works_so_the_test_above_can_fail(
    folder: "LedgerFolder", tamper: Tamper
) -> None:
    folder.with_entries().close()
    key = derive_keys(key_path(folder.path).read_bytes()).chain
    forge(folder, tamper, partial(chain_digest, key))
    assert folder.open_read_only().verify() is None


@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_removing_any_row_is_detected_even_the_last(
    folder: "LedgerFolder", tamper: Tamper, sequence: int
) -> None:
    folder.with_entries().close()
    tamper(folder.path, "DELETE FROM entries WHERE sequence = ?", sequence)
    assert folder.open_read_only().verify() == sequence


def test_swapping_two_rows_is_detected(folder: "LedgerFolder", tamper: Tamper) -> None:
    folder.with_entries().close()
    for before, after in ((2, 99), (3, 2), (99, 3)):
        tamper(folder.path, "UPDATE entries SET sequence = ? WHERE sequence = ?", after, before)
    assert folder.open_read_only().verify() == 2


def test_only_a_head_noted_elsewhere_reveals_an_older_copy_of_the_whole_folder(
    tmp_path: Path, folder_at: "Callable[[Path], LedgerFolder]"
) -> None:
    (tmp_path / "now").mkdir()
    folder = folder_at(tmp_path / "now")
    ledger = folder.with_entries()
    early = format_head(ledger.head())
    ledger.close()
    shutil.copytree(tmp_path / "now", tmp_path / "copy")
    ledger = folder.open()
    folder.append(ledger, cost=9)
    noted = format_head(ledger.head())[: len("4:") + 16]
    assert ledger.contains(*parse_head(early))
    ledger.close()
    assert folder.open_read_only().contains(*parse_head(noted))

    restored = folder_at(tmp_path / "copy").open_read_only()
    assert restored.verify() is None  # consistent in itself,
    assert restored.behind_head_note() is None  # and its note is just as old:
    assert not restored.contains(*parse_head(noted))  # only the head noted elsewhere reveals it
    assert restored.contains(*parse_head(early))


@pytest.mark.parametrize(
    "text", ["", "3", "3:", "3:abc", "x:" + "0" * 64, "3:" + "g" * 16, "-1:00"]
)
def test_invalid_heads_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="SEQUENCE:DIGEST"):
        parse_head(text)


def test_entries_with_broken_facts_are_named(folder: "LedgerFolder", tamper: Tamper) -> None:
    folder.with_entries().close()
    for broken in ("{", "[]", '{"no": "kind"}', '{"kind": 3}'):
        tamper(folder.path, "UPDATE entries SET facts = ? WHERE sequence = 2", broken)
        with pytest.raises(InputError, match="entry 2: expected facts"):
            list(folder.open_read_only().entries())
        assert folder.open_read_only().verify() == 2


def test_entries_written_during_verification_are_not_tampering(
    folder: "LedgerFolder", monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, reader = folder.with_entries(), folder.open_read_only()
    pending = [1]

    def interrupted(key: bytes, previous: bytes, line: tuple[object, ...]) -> bytes:
        while pending:
            folder.append(ledger, cost=pending.pop())
        return chain_digest(key, previous, line)

    monkeypatch.setattr("vesper.privacy.ledger.reader.chain_digest", interrupted)
    assert reader.verify() is None
    assert reader.verify() is None
    assert reader.head()[0] == 4
