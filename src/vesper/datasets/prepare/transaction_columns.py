"""Columns that `prepare` reads, each as SQL for its value, or NULL where the value is unreadable.

One pass over a table counts the unusable rows; only if there are any does a second pass find the
first three, to name them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from vesper.datasets.prepare.transaction_table import TransactionTable, identifier, scan
from vesper.datasets.prepare.windows import Window
from vesper.errors import InputError, first_three

_INTEGERS = frozenset(
    "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT".split()
)
_LARGEST_LABEL = 2**31 - 1
_LARGEST_AMOUNT = 1e15  # beyond it a sum of amounts in float64 loses cents


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        name: Name in the file.
        value: SQL for its value.
        is_bad: SQL that is true for a row that cannot be used.
        expected: Description of a valid value, for messages.
    """

    name: str
    value: str
    is_bad: str
    expected: str


def time_column(table: TransactionTable, window: Window, *, optional: bool = False) -> Column:
    """Return the column `time` as BIGINT: whole seconds since 1970 for dates, else the integer.

    Text without an offset is UTC. Text goes through TIMESTAMPTZ because a cast of
    `2024-01-01T00:00+02:00` to TIMESTAMP silently drops the offset.

    Raises:
        InputError: The column has integers and the windows dates, or vice versa.
    """
    kind = table.columns["time"]
    dates = kind == "DATE" or kind.startswith("TIMESTAMP")
    if window.holds_dates and dates:
        value = 'CASE WHEN isfinite("time") THEN floor(epoch("time")) END'
    elif window.holds_dates and kind == "VARCHAR":
        value = (
            "CASE WHEN regexp_matches(\"time\", '^[0-9]{4}-') "
            'THEN floor(epoch(TRY_CAST("time" AS TIMESTAMPTZ))) END'
        )
    elif not window.holds_dates and (kind in _INTEGERS or kind == "VARCHAR"):
        value = _integer("time", kind)
    else:
        wanted = "dates" if window.holds_dates else "integers"
        raise InputError(
            f"{table.path}: column 'time': expected {wanted}, as in the window {window.text}, "
            f"found {kind}; write the windows in the form of the column"
        )
    value = f"TRY_CAST({value} AS BIGINT)"
    is_bad = f'"time" IS NOT NULL AND {value} IS NULL' if optional else f"{value} IS NULL"
    expected = "an ISO date or date-time" if window.holds_dates else "an integer"
    return Column(name="time", value=value, is_bad=is_bad, expected=expected)


def text_column(table: TransactionTable, name: str, *, optional: bool = False) -> Column:
    """Return an id or category column, text or integer, as VARCHAR.

    Raises:
        InputError: The column has another type, such as floating-point numbers.
    """
    kind = table.columns[name]
    if kind != "VARCHAR" and kind not in _INTEGERS:
        raise InputError(
            f"{table.path}: column {name!r}: expected text or integers, found {kind}; convert it"
        )
    value = f"nullif(CAST({identifier(name)} AS VARCHAR), '')"
    is_bad = "false" if optional else f"{value} IS NULL"
    return Column(name=name, value=value, is_bad=is_bad, expected="text or an integer")


def amount_column(table: TransactionTable) -> Column:
    """Return the column `amount` as DOUBLE; NULL where the event has none.

    Raises:
        InputError: The column does not have numbers.
    """
    kind = table.columns["amount"]
    if kind not in _INTEGERS | {"VARCHAR", "DOUBLE", "FLOAT"} and not kind.startswith("DECIMAL"):
        raise InputError(
            f"{table.path}: column 'amount': expected numbers, found {kind}; convert it"
        )
    number = 'TRY_CAST("amount" AS DOUBLE)'
    value = f"CASE WHEN NOT isnan({number}) THEN {number} END"
    is_bad = (
        f'"amount" IS NOT NULL AND ({number} IS NULL '
        f"OR (NOT isnan({number}) AND abs({number}) > {_LARGEST_AMOUNT}))"
    )
    expected = f"a number up to {_LARGEST_AMOUNT:.0e}, or nothing"
    return Column(name="amount", value=value, is_bad=is_bad, expected=expected)


def label_column(table: TransactionTable) -> Column:
    """Return the column `label` as BIGINT: class numbers from 0.

    Raises:
        InputError: The column has another type.
    """
    kind = table.columns["label"]
    if kind not in _INTEGERS and kind != "VARCHAR":
        raise InputError(
            f"{table.path}: column 'label': expected class numbers 0, 1, ..., found {kind}; "
            f"write them as integers"
        )
    value = f"TRY_CAST({_integer('label', kind)} AS BIGINT)"
    is_bad = f"{value} IS NULL OR {value} NOT BETWEEN 0 AND {_LARGEST_LABEL}"
    return Column(name="label", value=value, is_bad=is_bad, expected="a class number 0, 1, ...")


def count_rows(
    connection: duckdb.DuckDBPyConnection, table: TransactionTable, columns: Sequence[Column]
) -> int:
    """Count the rows of a table, and refuse the table if any row cannot be used.

    Raises:
        InputError: There are no rows, or some cannot be used.
    """
    counts = ", ".join(f"count(*) FILTER (WHERE {column.is_bad})" for column in columns)
    rows, *bad = scan(connection, table, f"SELECT count(*), {counts} FROM {table.sql}")[0]
    if rows == 0:
        raise InputError(f"{table.path}: expected rows, found an empty table")
    for column, count in zip(columns, bad, strict=True):
        if count:
            raise InputError(
                f"{table.path}: column {column.name!r}: expected {column.expected}, found "
                f"{count} row(s) without one "
                f"({first_three(_offenders(connection, table, column))}); correct or remove them"
            )
    return int(rows)


def _offenders(
    connection: duckdb.DuckDBPyConnection, table: TransactionTable, column: Column
) -> list[str]:
    connection.execute("SET threads = 1")  # file order, so that the numbers are the file's rows
    rows = scan(
        connection,
        table,
        f"SELECT row, CAST({identifier(column.name)} AS VARCHAR) FROM "
        f"(SELECT *, row_number() OVER () AS row FROM {table.sql}) "
        f"WHERE {column.is_bad} ORDER BY row LIMIT 3",
    )
    return [f"row {row} has {'nothing' if value is None else repr(value)}" for row, value in rows]


def _integer(name: str, kind: str) -> str:
    """Return SQL for an integer; text must be a whole number, as a cast would round 1.5 to 2."""
    raw = identifier(name)
    if kind != "VARCHAR":
        return raw
    return f"CASE WHEN regexp_full_match({raw}, '[+-]?[0-9]+') THEN {raw} END"
