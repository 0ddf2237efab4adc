"""Scratch database of `prepare`: a DuckDB file in the output folder, with bounded memory.

    activity(part, person, seconds, type, channel, amount)   rows inside a window
    labels(part, person, label)                               one row per labelled node
    nodes(number, id, person, part)                           a user in a window, ordered by id
    edges(low, high, src, dst, transfers)                     one row per pair of nodes, low < high

`part` is 0 for the train window and 1 for the test window.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import duckdb

from vesper.datasets.prepare.windows import Window
from vesper.errors import InputError, VesperError

MEMORY = "2GB"

OUT_OF_SPACE = (
    duckdb.OutOfMemoryException,
    duckdb.IOException,
    duckdb.FatalException,  # a statement after one that failed to write
    duckdb.TransactionException,  # a commit that failed to write
)
"""Errors of DuckDB that are not a table's fault."""

Windows = tuple[Window, Window]
Connection = duckdb.DuckDBPyConnection


@contextmanager
def scratch_database(folder: Path) -> Iterator[Connection]:
    """Open a database in `folder`; data that does not fit into memory spills there too."""
    folder = folder.absolute()  # DuckDB reads a relative path such as `md:x` as an address
    try:
        connection = duckdb.connect(str(folder / "tables.duckdb"))
    except duckdb.Error as error:
        raise _out_of_space(error) from None
    try:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET temp_directory = ?", [str(folder / "spill")])
        connection.execute("SET TimeZone = 'UTC'")
        with _interruptible(connection):
            yield connection
    except OUT_OF_SPACE as error:
        raise _out_of_space(error) from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # DuckDB swallows what the Ctrl-C handler raised
            signal.raise_signal(signal.SIGINT)
        raise
    finally:
        connection.close()


def _out_of_space(error: duckdb.Error) -> VesperError:
    reason = str(error).splitlines()[0]
    return VesperError(f"prepare: out of memory or disk space: {reason}; free some and try again")


@contextmanager
def _interruptible(connection: Connection) -> Iterator[None]:
    """On Ctrl-C, interrupt the query first; DuckDB's threads would otherwise run to its end."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        connection.interrupt()
        before(number, frame)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def window_sql(seconds: str, windows: Windows) -> str:
    """Return SQL for the window that a time falls in: 0, 1, or NULL."""
    train, test = windows
    return (
        f"CAST(CASE WHEN {seconds} >= {train.start} AND {seconds} < {train.stop} THEN 0 "
        f"WHEN {seconds} >= {test.start} AND {seconds} < {test.stop} THEN 1 END AS TINYINT)"
    )


def require_both_windows(connection: Connection, table: str, path: Path, windows: Windows) -> None:
    """Raise unless `table`, made from the file at `path`, has rows in both windows.

    Raises:
        InputError: A window has no rows.
    """
    for part, window in enumerate(windows):
        if not number(connection, f"SELECT count(*) FROM {table} WHERE part = {part}"):
            raise InputError(
                f"{path}: expected rows in the {window.name} window {window.text}, found none; "
                f"check the window and the column 'time'"
            )


def number(connection: Connection, query: str) -> int:
    """Run a query that returns one whole number."""
    return int(connection.execute(query).fetchall()[0][0])
