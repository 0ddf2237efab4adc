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
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from vesper.errors import InputError
from vesper.privacy.events import PURE_KIND
from vesper.privacy.ledger.keys import Keys, key_path, read_keys

DEGREES = "degree histogram"
"""What events of degree histograms are called."""

COLUMNS = "sequence, time, graph, run, facts, cost, receivers"

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

    def __init__(self, path: Path, database: sqlite3.Connection, *, key: Path | None = None):
        self.path, self._db = path, database
        self._key = key or key_path(path)

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
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Read the entries after a sequence number, oldest first."""
        query = f"SELECT {COLUMNS} FROM entries WHERE sequence > ? ORDER BY sequence"
        with self._read_errors():
            for sequence, time, graph, run, facts, cost, encoded_receivers in self._db.execute(
                query, (after,)
            ):
                yield Entry(
                    sequence,
                    time,
                    graph,
                    run,
                    self._facts(sequence, facts),
                    cost,
                    encoded_receivers,
                )

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
            return None if self.head() == (expected - 1, previous) else expected

    def contains(self, sequence: int, digest: str) -> bool:
        """Whether the digest after `sequence` entries starts with `digest` (hexadecimal)."""
        with self._read_errors():
            query = "SELECT digest FROM entries WHERE sequence = ?"
            row = self._db.execute(query, (sequence,)).fetchone()
        return (
            row is not None
            and len(digest) >= FEWEST_HEAD_DIGITS
            and bytes(row[0]).hex().startswith(digest.lower())
        )

    def behind_head_note(self) -> str | None:
        """Describe the problem if the note of the head lists entries that the ledger lacks."""
        note = self.path.with_name(f"{self.path.name}.head")
        if not note.is_file():
            return None
        try:
            sequence, _, digest = note.read_text(errors="replace").strip().partition(":")
        except OSError as error:
            raise InputError(f"{note}: cannot be read ({error.strerror})") from None
        if sequence.isdigit() and len(sequence) < 19 and self.contains(int(sequence), digest):
            return None
        return (
            f"{self.path}: the ledger is older than what was charged: {note.name} lists "
            f"{sequence[:19]} entries; restore the newest ledger (with its -wal file)"
        )

    def _facts(self, sequence: int, text: str) -> dict[str, Any]:
        try:
            facts = json.loads(text)
        except (ValueError, TypeError):
            facts = None
        if not (isinstance(facts, dict) and isinstance(facts.get("kind"), str)):
            raise InputError(
                f"{self.path}: entry {sequence}: expected facts of a known kind as JSON, found "
                f"{str(text)[:40]!r}; it was tampered with or damaged, run `vesper budget verify`"
            )
        return facts

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
            self._db.execute("ROLLBACK")

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(f"{self.path}: cannot be read as a ledger ({error})") from None


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


def epsilon_of_counts(ledger: LedgerReader, *, before_run: str | None = None) -> Fraction:
    """Return `counted`, for all counts or only those before the first charge of a run."""
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for entry in ledger.entries():
        if before_run is not None and entry.run == before_run and entry.cost > 0:
            break
        facts = entry.facts
        if facts["kind"] == PURE_KIND and str(facts["what"]).startswith(DEGREES):
            sums[entry.graph] += Fraction(facts["epsilon"])
    return max(sums.values(), default=Fraction(0))
