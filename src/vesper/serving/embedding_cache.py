"""Received embeddings on disk: a repeated query costs nothing and sends nothing.

    embeddings  (snapshot, stage, id) -> embedding, checksum
    notes       "snapshot", "budget"  -> note of the last one received, checksum
                "graph NAME"          -> note of the graph's budget, and its metric if measured

It is only a cache, so damage costs a query: a row whose checksum is wrong counts as missing, and a
file that SQLite cannot read is replaced by an empty one, also while it is in use.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError

IDS_PER_STATEMENT = 500
"""Most ids in one SQL statement."""

GRAPH_NOTE_PREFIX = "graph "
"""Prefix of notes about a graph; its name follows."""

Embedding = NDArray[np.float32]

T = TypeVar("T")

FORMAT = 2
"""Number of the tables' format; a cache of another format is emptied."""

_TABLES = (
    """CREATE TABLE IF NOT EXISTS embeddings (
        snapshot TEXT, stage INTEGER, id TEXT, width INTEGER, depth INTEGER, content BLOB,
        checksum BLOB, PRIMARY KEY (snapshot, stage, id)
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT, checksum BLOB)",
)
_DAMAGE = {
    sqlite3.SQLITE_ERROR,  # a table or column is missing
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_CONSTRAINT,
}


class EmbeddingCache:
    """Embeddings received for one run, in a folder of the label party; safe from any thread."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / "embeddings.sqlite", threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = self._open_database()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise self._unusable(error) from None
            self._replace_by_empty()
        except OSError as error:
            raise VesperError(f"{folder}: cannot be written ({error.strerror})") from None

    def find(self, snapshot: str, stage: int, ids: Iterable[str]) -> dict[str, Embedding]:
        """Return the embeddings, (width, depth), of those ids that are stored undamaged."""
        found: dict[str, Embedding] = {}
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), IDS_PER_STATEMENT):
            some = wanted[start : start + IDS_PER_STATEMENT]
            query = (
                f"SELECT id, width, depth, content, checksum FROM embeddings "
                f"WHERE snapshot = ? AND stage = ? AND id IN ({','.join('?' * len(some))})"
            )
            rows = self._fetch(query, (snapshot, stage, *some))
            for text, width, depth, content, checksum in rows:
                if checksum == _checksum(snapshot, stage, text, width, depth, content):
                    found[text] = np.frombuffer(content, dtype="<f4").reshape(width, depth)
        return found

    def store(self, snapshot: str, stage: int, ids: Iterable[str], values: Embedding) -> None:
        """Store embeddings, (ids, width, depth)."""
        rows = []
        for text, row in zip(ids, values, strict=True):
            key = (snapshot, stage, text, *row.shape, row.astype("<f4").tobytes())
            rows.append((*key, _checksum(*key)))
        self._write("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def read_note(self, name: str) -> str | None:
        """Return the note of this name, if there is an undamaged one."""
        rows = self._fetch("SELECT value, checksum FROM notes WHERE name = ?", (name,))
        return next((str(value) for value, sum_ in rows if sum_ == _checksum(name, value)), None)

    def write_note(self, name: str, value: str) -> None:
        """Write a note in place of the one with the same name."""
        row = (name, value, _checksum(name, value))
        self._write("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", [row])

    def write_graph_note(self, name: str, **facts: float) -> None:
        """Add facts to the note about a graph."""
        before = json.loads(self.read_note(f"{GRAPH_NOTE_PREFIX}{name}") or "{}")
        self.write_note(f"{GRAPH_NOTE_PREFIX}{name}", json.dumps({**before, **facts}))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _fetch(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return self._use(lambda: self._db.execute(query, values).fetchall())

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        def write() -> None:
            with self._db:
                self._db.executemany(statement, rows)

        self._use(write)

    def _use(self, work: Callable[[], T]) -> T:
        """Use the database; if it is damaged, once more with an empty one in its place."""
        with self._lock:
            try:
                return work()
            except sqlite3.Error as error:
                if not _is_damage(error):
                    raise self._unusable(error) from None
            self._replace_by_empty()
            try:
                return work()
            except sqlite3.Error as error:
                raise self._unusable(error) from None

    def _replace_by_empty(self) -> None:
        with suppress(AttributeError, sqlite3.Error):  # it was never opened
            self._db.close()
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            self._db = self._open_database()
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None

    def _open_database(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, check_same_thread=False, timeout=30)
        database.text_factory = _lenient_text
        try:
            database.execute("PRAGMA journal_mode = WAL")
            if database.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                for table in ("embeddings", "notes"):
                    database.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in (*_TABLES, f"PRAGMA user_version = {FORMAT}"):
                database.execute(statement)
        except BaseException:
            database.close()
            raise
        return database

    def _unusable(self, error: Exception) -> VesperError:
        return VesperError(
            f"{self._path}: cannot be used ({error}); it is a cache and may be removed"
        )


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is damaged, rather than locked, unwritable or on a full disk."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _lenient_text(raw: bytes) -> str:
    """Decode damaged text too; its checksum will not fit."""
    return raw.decode(errors="replace")


def _checksum(*parts: object) -> bytes:
    """Checksum of a row, with the types of its cells."""
    return blake2b(repr(parts).encode(errors="replace"), digest_size=8).digest()


def read_graph_notes(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the notes about each graph; empty if there is no cache, or it is damaged."""
    path = folder / "embeddings.sqlite"
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = _lenient_text
            rows = database.execute(
                "SELECT name, value, checksum FROM notes ORDER BY name"
            ).fetchall()
        return {
            name.removeprefix(GRAPH_NOTE_PREFIX): json.loads(value)
            for name, value, checksum in rows
            if checksum == _checksum(name, value) and name.startswith(GRAPH_NOTE_PREFIX)
        }
    except (sqlite3.Error, ValueError):
        return {}
