"""Received embeddings on disk: a repeated query costs nothing and sends nothing.

    embeddings  (snapshot, stage, id) -> embedding
    notes       "snapshot", "budget"  -> note of the last one received
                "graph NAME"          -> note of the graph's budget, and its metric if measured

A damaged file is replaced by an empty one: it is only
a cache.
"""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError

IDS_PER_STATEMENT = 500
"""Most ids in one SQL statement."""

GRAPH_NOTE_PREFIX = "graph "
"""Prefix of notes about a graph; its name follows."""

Embedding = NDArray[np.float32]

_TABLES = (
    """CREATE TABLE IF NOT EXISTS embeddings (
        snapshot TEXT, stage INTEGER, id TEXT, width INTEGER, depth INTEGER, content BLOB,
        PRIMARY KEY (snapshot, stage, id)
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT)",
)


class EmbeddingCache:
    """Embeddings received for one run, in a folder of the label party; safe from any thread."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / "embeddings.sqlite", threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = self._open_database()
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            with self._usable():
                self._db = self._open_database()
        except OSError as error:
            raise VesperError(f"{folder}: cannot be written ({error.strerror})") from None

    def find(self, snapshot: str, stage: int, ids: Iterable[str]) -> dict[str, Embedding]:
        """Return the embeddings, (width, depth), of those ids that are stored."""
        found: dict[str, Embedding] = {}
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), IDS_PER_STATEMENT):
            some = wanted[start : start + IDS_PER_STATEMENT]
            query = (
                f"SELECT id, width, depth, content FROM embeddings "
                f"WHERE snapshot = ? AND stage = ? AND id IN ({','.join('?' * len(some))})"
            )
            with self._usable():
                rows = self._db.execute(query, (snapshot, stage, *some)).fetchall()
            for text, width, depth, content in rows:
                found[text] = np.frombuffer(content, dtype="<f4").reshape(width, depth)
        return found

    def store(self, snapshot: str, stage: int, ids: Iterable[str], values: Embedding) -> None:
        """Store embeddings, (ids, width, depth)."""
        rows = [
            (snapshot, stage, text, *row.shape, row.astype("<f4").tobytes())
            for text, row in zip(ids, values, strict=True)
        ]
        with self._usable(), self._db:
            self._db.executemany(
                "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?, ?, ?)", rows
            )

    def read_note(self, name: str) -> str | None:
        """Return the note of this name, if there is one."""
        with self._usable():
            row = self._db.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def write_note(self, name: str, value: str) -> None:
        """Write a note in place of the one with the same name."""
        with self._usable(), self._db:
            self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def write_graph_note(self, name: str, **facts: float) -> None:
        """Add facts to the note about a graph."""
        before = json.loads(self.read_note(f"{GRAPH_NOTE_PREFIX}{name}") or "{}")
        self.write_note(f"{GRAPH_NOTE_PREFIX}{name}", json.dumps({**before, **facts}))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _open_database(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, check_same_thread=False, timeout=30)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            for table in _TABLES:
                database.execute(table)
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def _usable(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise VesperError(
                    f"{self._path}: cannot be used ({error}); it is a cache and may be removed"
                ) from None


def read_graph_notes(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the notes about each graph; empty if there is no cache, or it is damaged."""
    path = folder / "embeddings.sqlite"
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name, value FROM notes ORDER BY name").fetchall()
        return {
            name.removeprefix(GRAPH_NOTE_PREFIX): json.loads(value)
            for name, value in rows
            if name.startswith(GRAPH_NOTE_PREFIX)
        }
    except (sqlite3.Error, ValueError):
        return {}
