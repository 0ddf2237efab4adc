"""Find and open one table of a party folder: `NAME.parquet` or `NAME.csv`, with the same columns.

Before anything is read, the content of a file is checked against its extension. CSV columns arrive
as text, because only the whole file can show whether `007` is a number; `ids.py` and `features.py`
convert text to numbers and name the rows that do not fit.
"""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from vesper.errors import InputError, first_three

if TYPE_CHECKING:
    Column: TypeAlias = pa.Array[Any]
else:
    Column = pa.Array  # generic for the type checker only

BATCH_ROWS = 1 << 19
"""Rows in memory at a time while tables are read."""

MAX_COLUMNS = 16_384
"""Most columns of a table; more features fit into one column of fixed-size lists."""

UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What pyarrow raises when a file is damaged, or uses types that it does not know."""

_PARQUET_MAGIC = b"PAR1"
_MAX_HEADER_BYTES = 1 << 23


@dataclass(frozen=True)
class Source:
    """One table on disk whose format and columns have been checked."""

    path: Path
    columns: tuple[str, ...]
    schema: pa.Schema

    @property
    def is_csv(self) -> bool:
        """Whether values arrive as text."""
        return self.path.suffix == ".csv"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream the named columns in file order."""
        if not columns:
            return
        try:
            if self.is_csv:
                yield from _csv_batches(self.path, columns)
            else:
                # Read ahead by pages: pre-buffering would hold the whole file in memory.
                with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20) as file:
                    # Smaller batches for wide rows: memory is proportional to cells, not rows.
                    rows = max(1024, BATCH_ROWS // max(1, _width(self.schema, columns) // 4))
                    batches = file.iter_batches(batch_size=rows, columns=list(columns))
                    yield from _undamaged(batches, file.metadata.num_rows)
        except UNREADABLE as error:
            raise InputError(_unreadable(self.path, error)) from None

    def require(self, *names: str) -> None:
        """Refuse the table if one of these columns is missing, and name the closest match."""
        for name in names:
            if name not in self.columns:
                spellings = {column.strip().lower(): column for column in self.columns}
                near = difflib.get_close_matches(name, spellings, n=1, cutoff=0.5)
                fix = f"rename '{spellings[near[0]]}' to" if near else "add a column"
                fix = f"{fix} '{name}'"
                if self.is_csv:
                    fix = _separator_fix(self.columns) or fix
                raise InputError(
                    f"{self.path}: expected a column '{name}', found {_listed(self.columns)}; {fix}"
                )


def _separator_fix(columns: Sequence[str]) -> str:
    """Return advice for a CSV with another separator, or an empty string."""
    separators = [mark for mark in ";\t|" if len(columns) == 1 and mark in columns[0]]
    return f"separate its columns with ',', not {separators[0]!r}" if separators else ""


def open_source(folder: Path, name: str) -> Source:
    """Open `folder/name.parquet` or `folder/name.csv`."""
    try:
        return open_table(_path_in(folder, name))
    except OSError as error:
        raise InputError(
            f"{folder}: expected a readable folder, got '{error.strerror}'; check its permissions"
        ) from None


def _path_in(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        raise InputError(
            f"{folder}: expected a folder with {name}.parquet or {name}.csv, found none"
        )
    paths = [
        path for path in (folder / f"{name}.parquet", folder / f"{name}.csv") if path.is_file()
    ]
    if not paths:
        inside = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
        raise InputError(
            f"{folder}: expected {name}.parquet or {name}.csv, found {_listed(inside) or 'nothing'}"
        )
    if len(paths) == 2:
        raise InputError(f"{folder}: found both {name}.parquet and {name}.csv; keep one of them")
    return paths[0]


def open_table(path: Path) -> Source:
    """Open one file: CSV if its name ends in `.csv`, Parquet otherwise."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not head:
        raise InputError(f"{path}: the file is empty; write the table again")
    schema = _csv_schema(path, head) if path.suffix == ".csv" else _parquet_schema(path, head)
    columns = tuple(schema.names)
    _refuse_many_columns(path, len(columns))
    repeated = sorted(name for name, count in Counter(columns).items() if count > 1)
    if repeated:
        raise InputError(
            f"{path}: expected distinct column names, found '{repeated[0]}' more than once; "
            f"rename one of them"
        )
    return Source(path=path, columns=columns, schema=schema)


def _parquet_schema(path: Path, head: bytes) -> pa.Schema:
    if not head.startswith(_PARQUET_MAGIC):
        raise InputError(f"{path}: the name says Parquet, but the content is something else")
    try:
        schema = pq.read_schema(path)
        _ = schema.names  # decodes them
        return schema
    except UNREADABLE as error:
        raise InputError(f"{path}: not a readable Parquet file ({_first_line(error)})") from None


def _csv_schema(path: Path, head: bytes) -> pa.Schema:
    if head.startswith(_PARQUET_MAGIC) or b"\0" in head:
        raise InputError(f"{path}: the name says CSV, but the content is binary")
    refuse_wide_header(path)
    try:
        parse = pa_csv.ParseOptions(newlines_in_values=True)
        with pa_csv.open_csv(path, parse_options=parse) as reader:
            names = reader.schema.names
    except UNREADABLE as error:
        raise InputError(_unreadable(path, error)) from None
    return pa.schema([(name, pa.string()) for name in names])


def _undamaged(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Check what the Parquet reader does not: that text is UTF-8, and the number of rows."""
    seen = 0
    for batch in batches:
        seen += batch.num_rows
        if seen > rows:
            break
        for column in batch.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column.validate(full=True)
        yield batch
    if seen != rows:
        raise pa.ArrowInvalid(f"expected {rows} rows in each column, found more or fewer")


def refuse_wide_header(path: Path) -> None:
    """Refuse a CSV with too many columns before any library makes buffers for each of them."""
    with path.open("rb") as file:
        header = file.readline(_MAX_HEADER_BYTES)
    if len(header) == _MAX_HEADER_BYTES:
        raise InputError(
            f"{path}: expected a first line with the names of the columns, found one of more than "
            f"{_MAX_HEADER_BYTES >> 20} MiB; write one row per line"
        )
    _refuse_many_columns(path, header.count(b",") + 1)


def _refuse_many_columns(path: Path, count: int) -> None:
    if count > MAX_COLUMNS:
        raise InputError(
            f"{path}: expected at most {MAX_COLUMNS:,} columns, found {count:,}; write a Parquet "
            f"file with all features in one column of fixed-size lists"
        )


def _csv_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in columns},
        include_columns=list(columns),
        strings_can_be_null=True,
        null_values=[""],
    )
    read = pa_csv.ReadOptions(block_size=1 << 25)
    # Otherwise a block could end within a cell.
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    with pa_csv.open_csv(
        path, read_options=read, parse_options=parse, convert_options=convert
    ) as reader:
        yield from reader


def _unreadable(path: Path, error: Exception) -> str:
    """Return the message for an unreadable file; for a CSV that is not UTF-8, name the lines."""
    if path.suffix == ".csv":
        bad: list[int] = []
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    bad.append(number)
        if bad:
            lines = first_three(f"line {number}" for number in bad)
            return f"{path}: {len(bad)} lines are not UTF-8 text ({lines}); save it as UTF-8"
    return f"{path}: cannot be read ({_first_line(error)}); write the table again"


def _width(schema: pa.Schema, columns: Sequence[str]) -> int:
    types = [schema.field(name).type for name in columns]
    return sum(t.list_size if pa.types.is_fixed_size_list(t) else 1 for t in types)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
