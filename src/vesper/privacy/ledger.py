"""The ledger file: append-only, hash-chained, on disk before anything leaves.

    digest_k = SHA-256(digest_{k-1}, entry_k),     head = (number of entries, last digest)

One SQLite file a data party, write-ahead log, full sync: an entry that `append` has returned is
there after a crash. Triggers refuse changes; the chain shows changes made around them; the head
shows entries cut off at the end, and, noted elsewhere, a ledger rewritten from scratch. A note of
the head beside the file (`LEDGER.head`) shows a ledger that was lost, or put back from an older
copy.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    sequence INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    graph TEXT NOT NULL,
    run TEXT NOT NULL,
    facts TEXT NOT NULL,
    cost INTEGER NOT NULL CHECK (cost >= 0),
    receivers BLOB NOT NULL,
    digest BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS head (
    only INTEGER PRIMARY KEY CHECK (only = 1), sequence INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER IF NOT EXISTS entries_last BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never removed'); END;
"""

APPLICATION = 0x56535052
"""What marks an SQLite file as ours."""

_COLUMNS = "sequence, time, graph, run, facts, cost, receivers"


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; `cost` is in units of mu^2 for each receiver."""

    sequence: int
    time: float
    graph: str
    run: str
    facts: dict[str, Any]
    cost: int
    receivers: bytes


class Ledger:
    """Opens, or makes, the ledger at `path`; `clock` gives seconds for the time column."""

    def __init__(self, path: Path, *, clock: Callable[[], float], must_exist: bool = False) -> None:
        if must_exist and not path.is_file():
            raise InputError(f"{path}: expected a ledger, found no file")
        self.path, self._clock = path, clock
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=60
            )
            known = self._db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
            if not known:
                if must_exist or self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                    raise InputError(f"{path}: cannot be used as a ledger (it is something else)")
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot be used as a ledger ({error})") from None
        behind = None if must_exist else self.behind_its_note()
        if behind:
            raise VesperError(behind)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the only right to write; everything inside is on disk at the end, or none of it."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
                self._note_head()
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise VesperError(
                f"{self.path}: the ledger cannot be written ({error}); nothing was released"
            ) from None

    def append(self, *, graph: str, run: str, facts: dict[str, Any], cost: int, who: bytes) -> int:
        """Write one entry inside a transaction; return its sequence number."""
        sequence, previous = self.head()
        sequence += 1
        line = (
            sequence,
            float(self._clock()),
            graph,
            run,
            json.dumps(facts, sort_keys=True),
            cost,
            who,
        )
        digest = chained(previous, line)
        self._db.execute(
            f"INSERT INTO entries ({_COLUMNS}, digest) VALUES (?,?,?,?,?,?,?,?)", (*line, digest)
        )
        self._db.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (sequence, digest))
        return sequence

    def head(self) -> tuple[int, bytes]:
        """How many entries there are, and the digest of them all."""
        row = self._db.execute("SELECT sequence, digest FROM head").fetchone()
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Read the entries after a sequence number, oldest first."""
        query = f"SELECT {_COLUMNS} FROM entries WHERE sequence > ? ORDER BY sequence"
        for sequence, time, graph, run, facts, cost, who in self._db.execute(query, (after,)):
            yield Entry(sequence, time, graph, run, json.loads(facts), cost, who)

    def _note_head(self) -> None:
        """Write the head beside the ledger, whole and on disk, after the entry itself."""
        sequence, digest = self.head()
        note = self.path.with_name(f"{self.path.name}.head")
        partial = note.with_name(f"{note.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with partial.open("w") as file:
                file.write(f"{sequence} {digest.hex()}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, note)
        except OSError as error:
            raise VesperError(f"{note}: cannot be written ({error.strerror})") from None

    def behind_its_note(self) -> str | None:
        """Say what is wrong when the note beside the ledger knows of entries it does not have."""
        note = self.path.with_name(f"{self.path.name}.head")
        if not note.is_file():
            return None
        sequence, _, digest = note.read_text().strip().partition(" ")
        if sequence.isdigit() and self.contains(digest, at=int(sequence)):
            return None
        return (
            f"{self.path}: the ledger is older than what was charged, {note.name} knows of "
            f"{sequence} entries; put the newest ledger back (with its -wal file)"
        )

    def verify(self) -> int | None:
        """Recompute the chain; give the first sequence number that does not fit, or None."""
        previous, expected = b"", 1
        for *line, digest in self._db.execute(
            f"SELECT {_COLUMNS}, digest FROM entries ORDER BY sequence"
        ):
            if line[0] != expected or chained(previous, tuple(line)) != digest:
                return expected
            previous, expected = digest, expected + 1
        return None if self.head() == (expected - 1, previous) else expected

    def contains(self, digest: str, *, at: int | None = None) -> bool:
        """Whether the chain once ended with this digest (hex), with so many entries if given."""
        rows = self._db.execute("SELECT sequence, digest FROM entries")
        return any(row[1].hex() == digest and at in (None, row[0]) for row in rows)


def chained(previous: bytes, line: tuple[Any, ...]) -> bytes:
    """Digest one entry together with everything before it."""
    digest = hashlib.sha256(previous)
    for value in line:
        part = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(type(value).__name__.encode() + len(part).to_bytes(8, "little") + part)
    return digest.digest()
