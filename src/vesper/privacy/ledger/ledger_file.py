"""The file format of a ledger, and opening one without write permission."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from vesper.errors import InputError
from vesper.privacy.ledger.reader import UNREADABLE, LedgerReader

APPLICATION = 0x56535052
"""SQLite application id of a ledger."""

FORMAT = 4
"""Format 4: accounts by declared names, reservations, and answered labels inside the chain."""


def default_ledger() -> Path:
    """Return the path of this user's ledger: one for all graphs, wherever their tables are."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "vesper" / "ledger.sqlite"


_MAGIC = b"SQLite format 3\0"


def open_to_read(path: Path, *, key: Path | None = None) -> LedgerReader:
    """Open a ledger read-only; no write permission is needed or used.

    Args:
        path: the ledger.
        key: path of its key, if it is not next to the ledger; only `verify` needs it.

    Raises:
        InputError: there is no such file, or it is not a ledger.
    """
    refuse_what_is_no_ledger(path)
    try:
        database = _connected(path)
    except UNREADABLE:
        # The folder is not writable. There is no -shm file, or SQLite would have used it, so no
        # process has the ledger open; a copy with its -wal file is as good as the ledger itself.
        database = _connected_to_copy(path)
    refuse_foreign(database, path)
    return LedgerReader(path, database, key=key)


def make_private(path: Path) -> None:
    """Create an empty file for a new ledger that only this user can read; keep an existing file.

    The files that SQLite creates next to it have the same permissions.

    Raises:
        InputError: it cannot be created.
    """
    try:
        if path == default_ledger():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise InputError(f"{path}: cannot be used as a ledger ({error.strerror})") from None


def refuse_what_is_no_ledger(path: Path) -> None:
    """Refuse a file that is missing, empty or not a database."""
    if not path.is_file():
        raise InputError(f"{path}: expected a ledger, found no file")
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not start:
        raise InputError(f"{path}: expected a ledger, found an empty file")
    if start != _MAGIC:
        raise InputError(f"{path}: cannot be used as a ledger (it is something else)")


def refuse_foreign(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not a ledger, or a ledger of another format."""
    try:
        application, version = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be used as a ledger ({error})") from None
    if application != APPLICATION:
        raise InputError(f"{path}: cannot be used as a ledger (it is something else)")
    if version != FORMAT:
        raise InputError(
            f"{path}: expected a ledger of format {FORMAT}, found format {version}; read it with "
            f"the version of vesper that wrote it. What it records stays spent: start a new ledger "
            f"for other graphs, and add up both where graphs share edges"
        )


def _connected(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    database = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=60)
    database.execute("SELECT 1 FROM sqlite_master").fetchone()
    return database


def _connected_to_copy(path: Path) -> sqlite3.Connection:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger.sqlite"
        try:
            shutil.copyfile(path, copy)
            log = path.with_name(path.name + "-wal")
            if log.exists():
                shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
            with closing(sqlite3.connect(copy)) as on_disk:
                database = sqlite3.connect(":memory:", isolation_level=None)
                on_disk.backup(database)
        except (OSError, *UNREADABLE) as error:
            raise InputError(f"{path}: cannot be read as a ledger ({error})") from None
    return database
