"""The ledger file: append-only, chained under a key, on disk before anything is released.

One SQLite file per data party, with write-ahead log and full sync: an entry survives a crash once
its transaction has ended. Triggers refuse accidental changes; the chain (`reader`) reveals changes
made around them; a note of the head next to the file (`LEDGER.head`) reveals a ledger that was lost
or restored from an older copy, and so does a second note, the witness, on storage that is not
restored together with this machine. `docs/ledger.md` says what to back up and what to note down.
"""

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError
from vesper.files import replace_file
from vesper.privacy.ledger.keys import Keys, key_path, make_keys, read_keys
from vesper.privacy.ledger.ledger_file import APPLICATION, FORMAT, make_private, refuse_foreign
from vesper.privacy.ledger.reader import (
    COLUMNS,
    UNREADABLE,
    LedgerReader,
    chain_digest,
    format_head,
    known_witness,
    witness_note,
)

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
    """CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END""",
    """CREATE TRIGGER IF NOT EXISTS entries_last BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'ledger entries are never removed'); END""",
)

WAIT_SECONDS = 600.0
"""Seconds to wait for another process that writes: a run that has started must not fail for it."""

_SETTINGS = ("journal_mode = WAL", "synchronous = FULL", "recursive_triggers = ON")
"""The last one makes the triggers fire for INSERT OR REPLACE too, at least on this connection."""


class Ledger(LedgerReader):
    """The ledger at `path`, created if there is none.

    Args:
        path: the file.
        clock: gives seconds for the time column.
        witness: second note of the head, on another machine's storage.

    Raises:
        InputError: the file is not a ledger, or its key is lost or belongs to another ledger.
        VesperError: the ledger is older than what was charged.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float], witness: Path | None = None
    ) -> None:
        self._clock, self._lock = clock, threading.RLock()
        make_private(path)
        try:
            database = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=WAIT_SECONDS
            )
            self._make(database, path)
        except UNREADABLE as error:
            if is_full_disk(error):
                raise VesperError(
                    f"{path}: cannot be written ({error}); free some space, nothing was charged"
                ) from None
            raise InputError(f"{path}: cannot be used as a ledger ({error})") from None
        super().__init__(path, database, witness=witness)
        behind = self.behind_head_note()
        if behind:
            raise VesperError(behind)
        self._keys = self._load_keys()
        self._remember(witness)
        if not self.head_notes[0].exists():
            self._note_head()  # a process that was killed may have left the first one unwritten

    @property
    def keys(self) -> Keys:
        """Keys of the ledger, read when it was opened."""
        return self._keys

    def _remember(self, witness: Path | None) -> None:
        """Note where the witness is, for everybody who opens the ledger after this."""
        note = witness_note(self.path)
        if witness is not None and known_witness(self.path) != witness.absolute():
            try:
                replace_file(note, f"{witness.absolute()}\n".encode())
            except OSError as error:
                raise VesperError(f"{note}: cannot be written ({error.strerror})") from None

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
                f"key, because nobody could verify the ledger with another"
            )
        return keys

    @contextmanager
    def transaction(self, *, dry_run: bool = False) -> Iterator[None]:
        """Do what follows atomically; a transaction inside another is part of it.

        Args:
            dry_run: undo everything at the end, to find out whether it would be refused.
        """
        with self._lock:
            if self._db.in_transaction:
                yield
                return
            try:
                self._db.execute("BEGIN IMMEDIATE")
                before = self.head()
                try:
                    yield
                    self._db.execute("ROLLBACK" if dry_run else "COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
            except sqlite3.Error as error:
                raise VesperError(
                    f"{self.path}: the ledger cannot be written ({error}); nothing was released"
                ) from None
            if self.head() != before:
                self._note_head()

    def _roll_back(self) -> None:
        """Undo the transaction, unless SQLite has done so itself, as on a full disk."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

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

    def _note_head(self) -> None:
        """Write the head next to the ledger and to the witness; after the entry, never lower it."""
        for note in self.head_notes:
            try:
                with _locked(note):
                    self._raise_note(note)
            except OSError as error:
                raise VesperError(
                    f"{note}: cannot be written ({error.strerror}); what was just charged stays "
                    f"charged, and nothing was released"
                ) from None

    def _raise_note(self, note: Path) -> None:
        head = self.head()
        if note.exists() and _noted_sequence(note) >= head[0]:
            return  # another process was faster
        partial = note.with_name(f"{note.name}.partial")
        try:
            with partial.open("w") as file:
                file.write(f"{format_head(head)}\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(note)
        except BaseException:  # Ctrl-C, too; what a killed process leaves is overwritten next time
            partial.unlink(missing_ok=True)
            raise


def is_full_disk(error: BaseException) -> bool:
    """Whether SQLite failed to write, as on a full disk."""
    name = getattr(error, "sqlite_errorname", "")
    return name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR")


@contextmanager
def _locked(note: Path) -> Iterator[None]:
    """Hold the lock of a note, so that two processes do not write it at the same time."""
    with note.with_name(f"{note.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _noted_sequence(note: Path) -> int:
    """Sequence number in a note; -1 for a damaged one, which is replaced."""
    sequence = note.read_text(errors="replace").partition(":")[0]
    is_number = sequence.isascii() and sequence.isdigit() and len(sequence) < 19
    return int(sequence) if is_number else -1


def key_of(ledger: Ledger) -> bytes:
    """Return the key under which versions of graphs are recorded in a ledger."""
    return ledger.keys.fingerprint
