"""The ledger file: append-only, chained under a key, on disk before anything is released.

One SQLite file per data party, with write-ahead log and full sync: an entry survives a crash once
its transaction has ended. Triggers refuse accidental changes; the chain (`reader`) reveals changes
made around them; a note of the head next to the file (`LEDGER.head`) reveals a ledger that was lost
or restored from an older copy. `docs/ledger.md` says what to back up and what to note down.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError
from vesper.privacy.ledger.keys import Keys, key_path, make_keys, read_keys
from vesper.privacy.ledger.ledger_file import APPLICATION, FORMAT, make_private, refuse_foreign
from vesper.privacy.ledger.reader import COLUMNS, LedgerReader, chain_digest, format_head

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (
        sequence INTEGER PRIMARY KEY,
        time REAL NOT NULL,
        graph TEXT NOT NULL,
        run TEXT NOT NULL,
        facts TEXT NOT NULL,
        cost REAL NOT NULL CHECK (cost >= 0),
        receivers BLOB NOT NULL,
        digest BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE IF NOT EXISTS head (
        only INTEGER PRIMARY KEY CHECK (only = 1), sequence INTEGER NOT NULL, digest BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE IF NOT EXISTS shown (
        name BLOB PRIMARY KEY, record BLOB NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END""",
    """CREATE TRIGGER IF NOT EXISTS entries_last BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'ledger entries are never removed'); END""",
)

_SETTINGS = ("journal_mode = WAL", "synchronous = FULL", "recursive_triggers = ON")
"""The last one makes the triggers fire for INSERT OR REPLACE too, at least on this connection."""


class Ledger(LedgerReader):
    """The ledger at `path`, created if there is none; `clock` gives seconds for the time column.

    Raises:
        InputError: the file is not a ledger, or its key is lost or belongs to another ledger.
        VesperError: the ledger is older than what was charged.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        make_private(path)
        try:
            database = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=60
            )
            self._make(database, path)
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot be used as a ledger ({error})") from None
        super().__init__(path, database)
        behind = self.behind_head_note()
        if behind:
            raise VesperError(behind)
        self._keys = self._load_keys()

    @property
    def keys(self) -> Keys:
        """Keys of the ledger, read when it was opened."""
        return self._keys

    @staticmethod
    def _make(database: sqlite3.Connection, path: Path) -> None:
        """Turn an empty file into a ledger; leave any other file as it is."""
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            if database.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise InputError(f"{path}: cannot be used as a ledger (it is something else)")
            database.execute(f"PRAGMA user_version = {FORMAT}")
            database.execute(f"PRAGMA application_id = {APPLICATION}")
        refuse_foreign(database, path)
        for setting in _SETTINGS:
            database.execute(f"PRAGMA {setting}")
        for statement in _SCHEMA:
            database.execute(statement)

    def _load_keys(self) -> Keys:
        """Read the keys; a new ledger gets a secret, and a first entry with its `check`."""
        path = key_path(self.path)
        if self.head()[0] == 0:
            with self.transaction():
                if self.head()[0] == 0:  # or another process was faster
                    self._keys = make_keys(path)
                    facts = {"kind": "key", "check": self._keys.check}
                    self.append(graph="", run="", facts=facts, cost=0.0, encoded_receivers=b"")
        keys = read_keys(path)
        first = next(self.entries(), None)
        if first is None or first.facts.get("check") != keys.check:
            raise InputError(
                f"{path}: this is not the key that {self.path.name} was started with; restore that "
                f"key, because another would give every graph a fresh budget"
            )
        return keys

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock; at the end, either everything inside is on disk or nothing is."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            before = self.head()
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise VesperError(
                f"{self.path}: the ledger cannot be written ({error}); nothing was released"
            ) from None
        if self.head() != before:
            self._note_head()

    def append(
        self, *, graph: str, run: str, facts: dict[str, Any], cost: float, encoded_receivers: bytes
    ) -> int:
        """Write one entry inside a transaction; return its sequence number."""
        sequence, previous = self.head()
        sequence += 1
        text = json.dumps(facts, sort_keys=True)
        line = (sequence, float(self._clock()), graph, run, text, float(cost), encoded_receivers)
        digest = chain_digest(self._keys.chain, previous, line)
        self._db.execute(
            f"INSERT INTO entries ({COLUMNS}, digest) VALUES (?,?,?,?,?,?,?,?)", (*line, digest)
        )
        self._db.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (sequence, digest))
        return sequence

    def answered_labels(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Look up the records of answered labels for these digests of ids, where there are any.

        A record is a digest of id and label.
        """
        records = {}
        for name in names:
            row = self._db.execute("SELECT record FROM shown WHERE name = ?", (name,)).fetchone()
            if row is not None:
                records[name] = row[0]
        return records

    def record_answered_labels(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Record labels before they are answered, inside a transaction; existing records stay."""
        self._db.executemany("INSERT OR IGNORE INTO shown VALUES (?, ?)", records)

    def _note_head(self) -> None:
        """Write the head next to the ledger, atomically and synced, after the entry itself."""
        note = self.path.with_name(f"{self.path.name}.head")
        partial = note.with_name(f"{note.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with partial.open("w") as file:
                file.write(f"{format_head(self.head())}\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(note)
        except OSError as error:
            raise VesperError(f"{note}: cannot be written ({error.strerror})") from None


def key_of(ledger: Ledger) -> bytes:
    """Return the key under which the graphs of a ledger are named."""
    return ledger.keys.fingerprint
