"""A transaction table on disk, Parquet or CSV, in a form that DuckDB can select from.

CSV cells are always read as text, so an id `007` stays `007`. DuckDB receives the exact columns and
dialect, because its detection silently reads a ragged file as one wide column.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import duckdb

from vesper.datasets.prepare.database import OUT_OF_SPACE
from vesper.errors import InputError, first_three
from vesper.graph.table_source import refuse_wide_header

_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class TransactionTable:
    """A table to select from.

    Args:
        path: Its file, for messages.
        columns: Column names in file order, each with its DuckDB type.
        sql: SQL to put after FROM.
    """

    path: Path
    columns: dict[str, str]
    sql: str

    def require(self, names: Sequence[str]) -> None:
        """Raise unless the table has all of these columns.

        Raises:
            InputError: One is missing; the message names the closest match.
        """
        for name in names:
            if name not in self.columns:
                near = get_close_matches(name, self.columns, n=1, cutoff=0.5)
                hint = f"; did you mean to rename {near[0]!r}?" if near else ""
                raise InputError(
                    f"{self.path}: expected a column {name!r}, found "
                    f"{', '.join(self.columns)}{hint}"
                )


def open_table(connection: duckdb.DuckDBPyConnection, path: Path) -> TransactionTable:
    """Read the columns of a file, but not its rows.

    Raises:
        InputError: The file does not exist, is empty, has another extension than .parquet or .csv,
            or has content that does not match its extension.
    """
    if not path.is_file():
        raise InputError(f"{path}: expected a Parquet or CSV file, found none; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: expected a table, found an empty file")
    match path.suffix.lower():
        case ".parquet":
            sql = f"read_parquet({_one_file(path)}, hive_partitioning=false)"
        case ".csv":
            sql = _csv_scan(path)
        case other:
            raise InputError(f"{path}: expected a .parquet or .csv file, found {other or 'none'}")
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
    except duckdb.Error as error:
        raise _unreadable(path, error) from None
    columns = {name: kind for name, kind, *_ in described}
    empty = [name for name, kind in columns.items() if kind == '"NULL"']
    if empty:  # written without any value, so the file has no type for it: read it as text
        text = ", ".join(
            f"CAST({identifier(name)} AS VARCHAR) AS {identifier(name)}" for name in empty
        )
        sql = f"(SELECT * REPLACE ({text}) FROM {sql})"
        columns.update(dict.fromkeys(empty, "VARCHAR"))
    return TransactionTable(path=path, columns=columns, sql=sql)


def scan(
    connection: duckdb.DuckDBPyConnection, table: TransactionTable, query: str
) -> list[tuple[Any, ...]]:
    """Run a query that reads the rows of `table`.

    Raises:
        InputError: The file turns out to be damaged or not UTF-8.
    """
    try:
        return connection.execute(query).fetchall()
    except OUT_OF_SPACE:
        raise  # not the table's fault
    except duckdb.Error as error:
        raise _unreadable(table.path, error) from None


def identifier(name: str) -> str:
    """Return a column name quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _unreadable(path: Path, error: duckdb.Error) -> InputError:
    """Return a one-line error for an existing file that could not be read."""
    if path.suffix.lower() == ".csv":
        bad = _lines_not_utf8(path)
        if bad:
            return _not_utf8(path, bad)
        return InputError(f"{path}: cannot be read as CSV: {_reason(error)}")
    return InputError(
        f"{path}: expected a Parquet file, found something else or a damaged one: {_reason(error)}"
    )


def _csv_scan(path: Path) -> str:
    refuse_wide_header(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            header = next(csv.reader(lines), [])
    except UnicodeDecodeError:
        raise _not_utf8(path, _lines_not_utf8(path)) from None
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    if len(set(header)) != len(header) or "" in header:
        raise InputError(
            f"{path}: expected a header line with a name for each column, found {header}"
        )
    columns = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in header)
    return (
        f"read_csv({_one_file(path)}, columns={{{columns}}}, header=true, auto_detect=false, "
        f"delim=',', quote='\"', escape='\"', hive_partitioning=false)"
    )


def _lines_not_utf8(path: Path) -> list[int]:
    bad = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                bad.append(number)
    return bad


def _not_utf8(path: Path, bad: list[int]) -> InputError:
    return InputError(
        f"{path}: expected UTF-8 text, found {len(bad)} line(s) that are not "
        f"({first_three(f'line {number}' for number in bad)}); save it as UTF-8"
    )


def _reason(error: duckdb.Error) -> str:
    """Return DuckDB's finding in one line, without its advice on settings that would hide it."""
    return " ".join(str(error).split("\n\n")[0].split("\nPossible")[0].split())


def _one_file(path: Path) -> str:
    """Return a path as SQL that DuckDB reads as exactly this file.

    DuckDB reads `*`, `?` and `[` as a pattern; each is escaped as a class of one character. A
    relative path may look like an address (`s3:`) or a home folder (`~`), an absolute one cannot.
    """
    name = str(path.absolute())
    if _PATTERN.search(name):
        if "\\" in name:  # a separator inside a pattern, which cannot be escaped
            raise InputError(
                f"{path}: expected a path without '\\' together with '*', '?' or '['; rename it"
            )
        name = _PATTERN.sub(r"[\g<0>]", name)
    return _quoted(name)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
