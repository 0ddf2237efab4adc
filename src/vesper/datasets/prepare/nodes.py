"""Tables of the scratch database: `activity`, `labels`, `nodes`, and then `edges`.

`nodes` is filled from activity and labels alone; no transfer is read for it. `edges` is filled from
transfers once `nodes` is complete, and is the only use that `prepare` makes of transfers.

A transfer with a user who is not a node of that window is dropped. Making a node of that user would
be wrong: which nodes exist is public, so a single transfer would be visible.
"""

from collections.abc import Sequence
from pathlib import Path

from vesper.datasets.prepare.database import (
    Connection,
    Windows,
    number,
    require_both_windows,
    window_sql,
)
from vesper.datasets.prepare.edge_free import (
    refuse_counterparty_columns,
    refuse_transfer_columns,
    refuse_transfer_types,
)
from vesper.datasets.prepare.transaction_columns import (
    Column,
    amount_column,
    count_rows,
    label_column,
    text_column,
    time_column,
)
from vesper.datasets.prepare.transaction_table import open_table, scan
from vesper.errors import InputError, first_three


def load_edges(connection: Connection, path: Path, windows: Windows) -> dict[str, int]:
    """Fill `edges`: one row for two nodes of a window with at least one transfer between them.

    Returns:
        The number of `edges`, and of transfers that made none: `transfers_outside` the windows,
        `self_transfers`, and `transfers_dropped` because an end is not a node.

    Raises:
        InputError: The table is unusable or a window is empty.
    """
    table = open_table(connection, path)
    table.require(("time", "src", "dst"))
    time = time_column(table, windows[0])
    src, dst = text_column(table, "src"), text_column(table, "dst")
    rows = count_rows(connection, table, (time, src, dst))
    scan(
        connection,
        table,
        f"CREATE TEMP TABLE pairs AS SELECT part, least(a, b) AS a, greatest(a, b) AS b, "
        f"count(*) AS transfers FROM (SELECT {window_sql(time.value, windows)} AS part, "
        f"{src.value} AS a, {dst.value} AS b FROM {table.sql}) "
        f"WHERE part IS NOT NULL GROUP BY ALL",
    )
    require_both_windows(connection, "pairs", path, windows)
    connection.execute(
        "CREATE TABLE edges AS SELECT least(u.number, v.number) AS low, "
        "greatest(u.number, v.number) AS high, least(u.id, v.id) AS src, "
        "greatest(u.id, v.id) AS dst, transfers FROM pairs "
        "JOIN nodes u ON pairs.a = u.person AND pairs.part = u.part "
        "JOIN nodes v ON pairs.b = v.person AND pairs.part = v.part "
        "WHERE a <> b ORDER BY low, high"
    )
    inside = number(connection, "SELECT sum(transfers) FROM pairs")
    to_oneself = number(connection, "SELECT coalesce(sum(transfers), 0) FROM pairs WHERE a = b")
    in_edges = number(connection, "SELECT coalesce(sum(transfers), 0) FROM edges")
    return {
        "edges": number(connection, "SELECT count(*) FROM edges"),
        "transfers_outside": rows - inside,
        "self_transfers": to_oneself,
        "transfers_dropped": inside - to_oneself - in_edges,
    }


MOST_WORDS = 1_000
"""Most different types or channels; a column with more holds ids, not categories."""


def load_activity(
    connection: Connection, path: Path, windows: Windows, *, transfer_columns: Sequence[str]
) -> tuple[int, int]:
    """Fill `activity`.

    Returns:
        The number of rows inside a window, and outside both.

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
    types = [
        (word, count)
        for word, count in scan(
            connection,
            table,
            f"SELECT {kind.value}, count(*) FROM {table.sql} GROUP BY 1 ORDER BY 2 DESC, 1 "
            f"LIMIT {MOST_WORDS + 1}",
        )
    ]
    _refuse_too_many(path, "type", [word for word, _ in types])
    refuse_transfer_types(str(path), types)
    refuse_transfer_columns(
        str(path), transfer_columns, columns=table.columns, types=[word for word, _ in types]
    )
    scan(
        connection,
        table,
        f"CREATE TABLE activity AS SELECT * FROM (SELECT {window_sql(time.value, windows)} "
        f"AS part, {user.value} AS person, {time.value} AS seconds, {kind.value} AS type, "
        f"{channel.value} AS channel, {amount.value} AS amount FROM {table.sql}) "
        f"WHERE part IS NOT NULL",
    )
    require_both_windows(connection, "activity", path, windows)
    inside = number(connection, "SELECT count(*) FROM activity")
    return inside, rows - inside


def load_labels(connection: Connection, path: Path, windows: Windows) -> int:
    """Fill `labels`; a label without a time counts for both windows.

    Returns:
        The number of labels outside both windows.

    Raises:
        InputError: The table is unusable, a window is empty, or a user has two labels in one.
    """
    table = open_table(connection, path)
    table.require(("id", "label"))
    user, label = text_column(table, "id"), label_column(table)
    columns: list[Column] = [user, label]
    parts = "[0, 1]"
    if "time" in table.columns:
        time = time_column(table, windows[0], optional=True)
        columns.append(time)
        parts = f'CASE WHEN "time" IS NULL THEN [0, 1] ELSE [{window_sql(time.value, windows)}] END'
    count_rows(connection, table, columns)
    scan(
        connection,
        table,
        f"CREATE TEMP TABLE known AS SELECT CAST(unnest({parts}) AS TINYINT) AS part, "
        f"{user.value} AS person, CAST({label.value} AS INTEGER) AS label FROM {table.sql}",
    )
    require_both_windows(connection, "known", path, windows)
    _refuse_two_labels(connection, path, windows)
    connection.execute(
        "CREATE TABLE labels AS SELECT part, person, min(label) AS label FROM known "
        "WHERE part IS NOT NULL GROUP BY part, person"
    )
    return number(connection, "SELECT count(*) FROM known WHERE part IS NULL")


def make_nodes(connection: Connection, windows: Windows) -> int:
    """Fill `nodes`: every user with activity in, or a label for, a window; return their number."""
    suffix = f"CASE part WHEN 0 THEN '@{windows[0].name}' ELSE '@{windows[1].name}' END"
    connection.execute(
        f"CREATE TABLE nodes AS SELECT row_number() OVER (ORDER BY id) - 1 AS number, * FROM "
        f"(SELECT person || {suffix} AS id, person, part FROM "
        f"(SELECT person, part FROM activity UNION SELECT person, part FROM labels)) ORDER BY id"
    )
    return number(connection, "SELECT count(*) FROM nodes")


def count_words(connection: Connection, path: Path, column: str) -> list[tuple[str, int]]:
    """Count each word of `type` or `channel` in the train window.

    Raises:
        InputError: There are too many words for the column to be a category.
    """
    counts = connection.execute(
        f"SELECT {column}, count(*) FILTER (WHERE part = 0) FROM activity "
        f"WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT {MOST_WORDS + 1}"
    ).fetchall()
    _refuse_too_many(path, column, [word for word, _ in counts])
    return [(word, count) for word, count in counts]


def _refuse_too_many(path: Path, column: str, words: Sequence[str]) -> None:
    if len(words) > MOST_WORDS:
        raise InputError(
            f"{path}: column {column!r}: expected at most {MOST_WORDS} different values, found "
            f"more ({first_three(words)}); use a column of categories, not of ids"
        )


def _refuse_two_labels(connection: Connection, path: Path, windows: Windows) -> None:
    groups = (
        "FROM (SELECT person, part FROM known WHERE part IS NOT NULL GROUP BY person, part "
        "HAVING count(DISTINCT label) > 1)"
    )
    conflicts = number(connection, f"SELECT count(*) {groups}")
    if conflicts:
        examples = connection.execute(
            f"SELECT person, part {groups} ORDER BY person, part LIMIT 3"
        ).fetchall()
        named = first_three(f"{person} in {windows[part].name}" for person, part in examples)
        raise InputError(
            f"{path}: column 'label': expected one label per user and window, found "
            f"{conflicts} user(s) with different labels ({named}); keep one of them"
        )
