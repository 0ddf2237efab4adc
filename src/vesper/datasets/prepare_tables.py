"""The tables `prepare` works on, in a DuckDB file beside the result, and how they are made.

    activity(part, user, seconds, type, channel, amount)   rows inside a window
    labels(part, user, label)                               one row a labelled node
    nodes(number, id, user, part)                           a user in a window, in order of id
    edges(low, high, src, dst)                              one row a pair of nodes, low < high

`part` is 0 for the train window and 1 for the test window. `nodes` is made from activity and
labels; transfers are read only after it is complete.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from vesper.datasets.edge_free import (
    refuse_counterparty_columns,
    refuse_told,
    refuse_transfer_types,
)
from vesper.datasets.transaction_columns import (
    amount_column,
    count_rows,
    label_column,
    text_column,
    time_column,
)
from vesper.datasets.transaction_table import open_table
from vesper.datasets.windows import Window
from vesper.errors import InputError, first_three

_MEMORY = "2GB"
_MOST_WORDS = 10_000

Windows = tuple[Window, Window]
Connection = duckdb.DuckDBPyConnection


@contextmanager
def scratch_database(folder: Path) -> Iterator[Connection]:
    """Open a database in `folder` that spills there and keeps to a fixed amount of memory."""
    connection = duckdb.connect(str(folder / "tables.duckdb"))
    try:
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute("SET temp_directory = ?", [str(folder / "spill")])
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    finally:
        connection.close()


def load_activity(
    connection: Connection, path: Path, windows: Windows, *, told: Sequence[str]
) -> tuple[int, int]:
    """Fill `activity`.

    Returns:
        How many rows fell into a window, and how many outside.

    Raises:
        InputError: The table is unusable, a window is empty, or some of it comes from transfers.
    """
    table = open_table(connection, path)
    refuse_counterparty_columns(str(path), table.columns)
    table.require(("time", "user", "type", "amount", "channel"))
    time, user = time_column(table, windows[0]), text_column(table, "user")
    kind, channel = text_column(table, "type"), text_column(table, "channel", optional=True)
    amount = amount_column(table)
    rows = count_rows(connection, table, (time, user, kind, amount, channel))
    types = connection.execute(
        f"SELECT {kind.value}, count(*) FROM {table.sql} GROUP BY 1 ORDER BY 2 DESC, 1"
    ).fetchall()
    refuse_transfer_types(str(path), types)
    refuse_told(str(path), told, columns=table.columns, types=[name for name, _ in types])
    connection.execute(
        f"CREATE TABLE activity AS SELECT * FROM (SELECT {_part(time.value, windows)} AS part, "
        f"{user.value} AS user, {time.value} AS seconds, {kind.value} AS type, "
        f"{channel.value} AS channel, {amount.value} AS amount FROM {table.sql}) "
        f"WHERE part IS NOT NULL"
    )
    inside = _require_both(connection, "activity", path, windows)
    return inside, rows - inside


def load_labels(connection: Connection, path: Path, windows: Windows) -> int:
    """Fill `labels`; a label without a time counts for both windows.

    Returns:
        How many labels fell outside both windows.

    Raises:
        InputError: The table is unusable, a window is empty, or a user has two labels in one.
    """
    table = open_table(connection, path)
    table.require(("id", "label"))
    user, label = text_column(table, "id"), label_column(table)
    if "time" in table.columns:
        time = time_column(table, windows[0], optional=True)
        checked = (user, label, time)
        parts = f"CASE WHEN \"time\" IS NULL THEN [0, 1] ELSE [{_part(time.value, windows)}] END"
    else:
        checked, parts = (user, label), "[0, 1]"
    count_rows(connection, table, checked)
    connection.execute(
        f"CREATE TEMP TABLE known AS SELECT CAST(unnest({parts}) AS TINYINT) AS part, "
        f"{user.value} AS user, CAST({label.value} AS INTEGER) AS label FROM {table.sql}"
    )
    _refuse_two_labels(connection, path, windows)
    outside = _number(connection, "SELECT count(*) FROM known WHERE part IS NULL")
    connection.execute(
        "CREATE TABLE labels AS SELECT part, user, min(label) AS label FROM known "
        "WHERE part IS NOT NULL GROUP BY part, user"
    )
    _require_both(connection, "labels", path, windows)
    return outside


def make_nodes(connection: Connection, windows: Windows) -> int:
    """Fill `nodes`: every user with activity in, or a label for, a window. Returns how many."""
    name = f"CASE part WHEN 0 THEN '@{windows[0].name}' ELSE '@{windows[1].name}' END"
    connection.execute(
        f"CREATE TABLE nodes AS SELECT row_number() OVER (ORDER BY id) - 1 AS number, * FROM "
        f"(SELECT user || {name} AS id, user, part FROM "
        f"(SELECT user, part FROM activity UNION SELECT user, part FROM labels)) ORDER BY id"
    )
    return _number(connection, "SELECT count(*) FROM nodes")


def load_edges(connection: Connection, path: Path, windows: Windows) -> dict[str, int]:
    """Fill `edges` from transfers, once `nodes` is complete.

    A transfer with a user who is no node of that window is dropped. To make a node of that user
    instead would be wrong: which nodes exist is public, so one transfer would show.

    Returns:
        How many transfers were outside the windows, to oneself, and dropped; how many edges.

    Raises:
        InputError: The table is unusable or a window is empty.
    """
    table = open_table(connection, path)
    table.require(("time", "src", "dst"))
    time, src, dst = (
        time_column(table, windows[0]),
        text_column(table, "src"),
        text_column(table, "dst"),
    )
    rows = count_rows(connection, table, (time, src, dst))
    connection.execute(
        f"CREATE TEMP TABLE pairs AS SELECT part, least(a, b) AS a, greatest(a, b) AS b, "
        f"count(*) AS transfers FROM (SELECT {_part(time.value, windows)} AS part, "
        f"{src.value} AS a, {dst.value} AS b FROM {table.sql}) WHERE part IS NOT NULL "
        f"GROUP BY ALL"
    )
    _require_both(connection, "pairs", path, windows)
    inside = _number(connection, "SELECT sum(transfers) FROM pairs")
    oneself = _number(connection, "SELECT coalesce(sum(transfers), 0) FROM pairs WHERE a = b")
    connection.execute(
        "CREATE TABLE edges AS SELECT least(u.number, v.number) AS low, "
        "greatest(u.number, v.number) AS high, least(u.id, v.id) AS src, "
        "greatest(u.id, v.id) AS dst, transfers FROM pairs "
        "JOIN nodes u ON pairs.a = u.user AND pairs.part = u.part "
        "JOIN nodes v ON pairs.b = v.user AND pairs.part = v.part "
        "WHERE a <> b ORDER BY low, high"
    )
    kept = _number(connection, "SELECT coalesce(sum(transfers), 0) FROM edges")
    return {
        "edges": _number(connection, "SELECT count(*) FROM edges"),
        "transfers_outside": rows - inside,
        "transfers_to_oneself": oneself,
        "transfers_dropped": inside - oneself - kept,
    }


def count_words(connection: Connection, path: Path, column: str) -> list[tuple[str, int]]:
    """Count each word of `type` or `channel` in the train window.

    Raises:
        InputError: There are so many that the column cannot be a category.
    """
    found = connection.execute(
        f"SELECT {column}, count(*) FILTER (WHERE part = 0) FROM activity "
        f"WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT {_MOST_WORDS + 1}"
    ).fetchall()
    if len(found) > _MOST_WORDS:
        raise InputError(
            f"{path}: column {column!r}: expected at most {_MOST_WORDS} different values, found "
            f"more ({first_three(word for word, _ in found)}); it should hold a category"
        )
    return [(word, count) for word, count in found]


def count_labels(connection: Connection) -> tuple[int, int]:
    """Count the labelled nodes of the train and of the test window."""
    train = _number(connection, "SELECT count(*) FROM labels WHERE part = 0")
    return train, _number(connection, "SELECT count(*) FROM labels WHERE part = 1")


def _part(seconds: str, windows: Windows) -> str:
    train, test = windows
    return (
        f"CAST(CASE WHEN {seconds} >= {train.start} AND {seconds} < {train.stop} THEN 0 "
        f"WHEN {seconds} >= {test.start} AND {seconds} < {test.stop} THEN 1 END AS TINYINT)"
    )


def _require_both(connection: Connection, name: str, path: Path, windows: Windows) -> int:
    counts = dict(
        connection.execute(f"SELECT part, count(*) FROM {name} GROUP BY part").fetchall()
    )
    for part, window in enumerate(windows):
        if not counts.get(part):
            raise InputError(
                f"{path}: expected rows in the {window.name} window {window.text}, found none; "
                f"check the window and the column 'time'"
            )
    return sum(counts.values())


def _refuse_two_labels(connection: Connection, path: Path, windows: Windows) -> None:
    query = (
        "FROM (SELECT user, part FROM known WHERE part IS NOT NULL GROUP BY user, part "
        "HAVING count(DISTINCT label) > 1)"
    )
    twice = _number(connection, f"SELECT count(*) {query}")
    if twice:
        found = connection.execute(
            f"SELECT user, part {query} ORDER BY user, part LIMIT 3"
        ).fetchall()
        named = first_three(f"{user} in {windows[part].name}" for user, part in found)
        raise InputError(
            f"{path}: column 'label': expected one label for a user in a window, found {twice} "
            f"with two that differ ({named}); keep the one that counts"
        )


def _number(connection: Connection, query: str) -> int:
    return int(connection.execute(query).fetchall()[0][0])
