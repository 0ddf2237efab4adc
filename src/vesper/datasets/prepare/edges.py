"""Fill `edges` from transfers, once `nodes` is complete: all that `prepare` makes of them.

A transfer with a user who is no node of that window is dropped. To make a node of that user instead
would be wrong: which nodes exist is public, so a single transfer would show.
"""

from pathlib import Path

from vesper.datasets.prepare.database import (
    Connection,
    Windows,
    number,
    part_of,
    require_both,
)
from vesper.datasets.prepare.transaction_columns import count_rows, text_column, time_column
from vesper.datasets.prepare.transaction_table import open_table, scan


def load_edges(connection: Connection, path: Path, windows: Windows) -> dict[str, int]:
    """Fill `edges`: one row for two nodes of a window with at least one transfer between them.

    Returns:
        How many `edges` there are, and how many transfers made none: `transfers_outside` the
        windows, `transfers_to_oneself`, `transfers_dropped` because an end is no node.

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
        f"count(*) AS transfers FROM (SELECT {part_of(time.value, windows)} AS part, "
        f"{src.value} AS a, {dst.value} AS b FROM {table.sql}) "
        f"WHERE part IS NOT NULL GROUP BY ALL",
    )
    require_both(connection, "pairs", path, windows)
    connection.execute(
        "CREATE TABLE edges AS SELECT least(u.number, v.number) AS low, "
        "greatest(u.number, v.number) AS high, least(u.id, v.id) AS src, "
        "greatest(u.id, v.id) AS dst, transfers FROM pairs "
        "JOIN nodes u ON pairs.a = u.person AND pairs.part = u.part "
        "JOIN nodes v ON pairs.b = v.person AND pairs.part = v.part "
        "WHERE a <> b ORDER BY low, high"
    )
    inside = number(connection, "SELECT sum(transfers) FROM pairs")
    oneself = number(connection, "SELECT coalesce(sum(transfers), 0) FROM pairs WHERE a = b")
    kept = number(connection, "SELECT coalesce(sum(transfers), 0) FROM edges")
    return {
        "edges": number(connection, "SELECT count(*) FROM edges"),
        "transfers_outside": rows - inside,
        "transfers_to_oneself": oneself,
        "transfers_dropped": inside - oneself - kept,
    }
