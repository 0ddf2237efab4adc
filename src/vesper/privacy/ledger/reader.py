"""Reading a ledger, and detecting whether it was tampered with; nothing in here can write.

    digest_k = HMAC-SHA-256(chain key, digest_{k-1}, entry_k),    head = (number of entries, digest)

Without the key nobody can make an entry that fits the chain, even with write access to the file,
its head and the note of the head next to it. The chain cannot detect an older copy of the whole
folder: that requires a head that was noted elsewhere (`contains`).
"""

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.errors import InputError
from vesper.privacy.ledger.keys import Keys, key_path, read_keys

DEGREES = "degree histogram"
"""What events of degree histograms are called."""

COLUMNS = "sequence, time, graph, run, facts, cost, receivers"

UNREADABLE = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What reading a damaged file raises; SQLite's own messages may contain its damaged names."""

FEWEST_HEAD_DIGITS = 16
"""Fewest digits of a noted head; a shorter one could match by chance or be forged by trial."""


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; `cost` is the mu^2 charged to each receiver."""

    sequence: int
    time: float
    graph: str
    run: str
    facts: dict[str, Any]
    cost: float
    receivers: bytes


class LedgerReader:
    """A ledger opened for reading; see `open_to_read`."""

    def __init__(
        self,
        path: Path,
        database: sqlite3.Connection,
        *,
        key: Path | None = None,
        witness: Path | None = None,
    ):
        self.path, self._db = path, database
        # damaged text has another digest too, so that `verify` finds it
        database.text_factory = lambda content: content.decode(errors="replace")
        self._key = key or key_path(path)
        self._witness = witness or known_witness(path)

    @property
    def keys(self) -> Keys:
        """Keys of the ledger; not needed to read entries."""
        return read_keys(self._key)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def head(self) -> tuple[int, bytes]:
        """Return the number of entries and the digest of all of them."""
        with self._read_errors():
            row = self._db.execute("SELECT sequence, digest FROM head").fetchone()
        match row:
            case None:
                return 0, b""
            case int(sequence), bytes(digest):
                return sequence, digest
            case _:
                raise InputError(
                    f"{self.path}: expected a head with a number and a digest, found "
                    f"{str(row)[:80]}; it was tampered with or damaged, restore the newest ledger"
                )

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Read the entries after a sequence number, oldest first."""
        query = f"SELECT {COLUMNS} FROM entries WHERE sequence > ? ORDER BY sequence"
        with self._read_errors():
            for line in self._db.execute(query, (after,)):
                match line:
                    case (
                        int(sequence),
                        float(time),
                        str(graph),
                        str(run),
                        str(facts),
                        float(cost),
                        bytes(encoded_receivers),
                    ):
                        known = self._facts(sequence, facts)
                        yield Entry(sequence, time, graph, run, known, cost, encoded_receivers)
                    case _:
                        raise self._damaged(line[0], "a value of its type in each column", line)

    def verify(self) -> int | None:
        """Recompute the chain; return the first sequence number that does not fit, or None.

        Raises:
            InputError: the key is missing; without it the entries cannot be verified.
        """
        key, previous, expected = self.keys.chain, b"", 1
        query = f"SELECT {COLUMNS}, digest FROM entries ORDER BY sequence"
        with self._read_errors(), self._read_transaction():
            for *line, digest in self._db.execute(query):
                if line[0] != expected or chain_digest(key, previous, tuple(line)) != digest:
                    return expected
                previous, expected = digest, expected + 1
            return None if self._has_head(expected - 1, previous) else expected

    def contains(self, sequence: int, digest: str) -> bool:
        """Whether the digest after `sequence` entries starts with `digest` (hexadecimal)."""
        with self._read_errors():
            query = "SELECT digest FROM entries WHERE sequence = ?"
            row = self._db.execute(query, (sequence,)).fetchone()
        return (
            row is not None
            and len(digest) >= FEWEST_HEAD_DIGITS
            and isinstance(row[0], bytes)
            and row[0].hex().startswith(digest.lower())
        )

    @property
    def head_notes(self) -> list[Path]:
        """Files that note the head: next to the ledger, and the witness, if there is one."""
        own = self.path.with_name(f"{self.path.name}.head")
        return [own] if self._witness is None else [own, self._witness]

    def behind_head_note(self) -> str | None:
        """Describe the problem if a note of the head lists entries that the ledger lacks."""
        for note in self.head_notes:
            try:
                text = note.read_text(errors="replace").strip()
            except FileNotFoundError:
                if self.head()[0] <= 1:
                    continue  # a new ledger, whose first note is about to be written
                remedy = (
                    f"mount its storage; to begin with a witness, copy {self.head_notes[0]} to it"
                    if note == self._witness
                    else "restore it; if it is lost and this is the newest copy of the ledger, "
                    "write the head that `vesper budget show --json` prints into it"
                )
                return f"{note}: expected the note of the head of {self.path}, found none; {remedy}"
            except OSError as error:
                raise InputError(f"{note}: cannot be read ({error.strerror})") from None
            sequence, _, digest = text.partition(":")
            is_number = sequence.isascii() and sequence.isdigit() and len(sequence) < 19
            if not (is_number and self.contains(int(sequence), digest)):
                return (
                    f"{self.path}: the ledger is older than what was charged: {note} lists "
                    f"{sequence[:19]} entries; restore the newest ledger (with its -wal file)"
                )
        return None

    def _has_head(self, sequence: int, digest: bytes) -> bool:
        row = self._db.execute("SELECT sequence, digest FROM head").fetchone()
        return row == (sequence, digest) if row else sequence == 0

    def _facts(self, sequence: int, text: str) -> dict[str, Any]:
        facts: Any = None
        with suppress(ValueError, RecursionError):
            facts = json.loads(text, parse_constant=_no_constant)
        if not (isinstance(facts, dict) and isinstance(facts.get("kind"), str)):
            raise self._damaged(sequence, "facts of a known kind as JSON", text)
        return facts

    def _damaged(self, sequence: int, expected: str, found: object) -> InputError:
        return InputError(
            f"{self.path}: entry {sequence}: expected {expected}, found {str(found)[:40]!r}; it "
            f"was tampered with or damaged, run `vesper budget verify`"
        )

    @contextmanager
    def _read_transaction(self) -> Iterator[None]:
        """Read entries and head as of one moment, whatever others write in the meantime."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # a damaged file may have ended it
                self._db.execute("ROLLBACK")

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as error:
            raise InputError(f"{self.path}: cannot be read as a ledger ({error})") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def witness_note(ledger: Path) -> Path:
    """Path of the file that says where the witness of a ledger is."""
    return ledger.with_name(f"{ledger.name}.witness")


def known_witness(ledger: Path) -> Path | None:
    """Return the witness that a ledger was opened with before; None: it has none.

    Raises:
        InputError: the file that says where it is cannot be read.
    """
    path = witness_note(ledger)
    try:
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); restore it") from None
    return Path(text) if text else None


def chain_digest(key: bytes, previous: bytes, line: tuple[Any, ...]) -> bytes:
    """Digest one entry together with everything before it, under the key."""
    digest = hmac.new(key, previous, hashlib.sha256)
    for value in line:
        part = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(type(value).__name__.encode() + len(part).to_bytes(8, "little") + part)
    return digest.digest()


def format_head(head: tuple[int, bytes]) -> str:
    """Format a head for people to note down: SEQUENCE:DIGEST.

    >>> format_head((3, bytes.fromhex("00ff")))
    '3:00ff'
    """
    return f"{head[0]}:{head[1].hex()}"


def parse_head(text: str) -> tuple[int, str]:
    """Parse SEQUENCE:DIGEST; the digest may be shortened to no fewer than 16 digits.

    >>> parse_head("3:00112233445566778899")
    (3, '00112233445566778899')
    """
    sequence, _, digest = text.partition(":")
    hexadecimal = set(digest.lower()) <= set("0123456789abcdef")
    if not (
        sequence.isascii()
        and sequence.isdigit()
        and len(sequence) < 19
        and hexadecimal
        and len(digest) >= FEWEST_HEAD_DIGITS
    ):
        raise InputError(
            f"--head: expected SEQUENCE:DIGEST as `vesper budget show` prints it, with at least "
            f"{FEWEST_HEAD_DIGITS} hexadecimal digits, got {text!r}"
        )
    return int(sequence), digest
