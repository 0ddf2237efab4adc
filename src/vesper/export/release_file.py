"""A released file and its statement on disk: both complete or absent; nothing is overwritten.

Both are written to a hidden folder, synced, and linked into place, the statement last: a file with
a statement is complete. A killed process leaves a hidden folder, which the next writer removes; if
it was killed between the two links, also a file without a statement, which no verb accepts.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vesper.errors import InputError, VesperError
from vesper.files import partial_folder
from vesper.graph.ids import Ids
from vesper.graph.table_source import Column
from vesper.method.export_columns import ExportColumns
from vesper.privacy.ledger.statement import sha256_of, statement_path
from vesper.progress import Progress, no_progress

ROWS = 1 << 16
"""Rows written at a time."""


class ExportFile:
    """A path for one released file, checked by `new_export_file` before anything is charged."""

    def __init__(self, out: Path, partial: Path) -> None:
        self.out, self.partial = out, partial

    def write(
        self,
        ids: Ids,
        columns: ExportColumns,
        *,
        statement_for: Callable[[str], str],
        progress: Progress = no_progress,
    ) -> None:
        """Write table and statement.

        Args:
            ids: of the rows.
            columns: by name, in the order of the ids.
            statement_for: makes the statement of a file with this SHA-256.
            progress: receives progress reports.

        Raises:
            VesperError: the files cannot be written, for instance because the disk is full;
                neither is left behind.
        """
        statement = statement_path(self.out)
        try:
            table, text = self.partial / self.out.name, self.partial / statement.name
            _write_table(table, ids, columns, progress)
            text.write_text(statement_for(sha256_of(table)), encoding="utf-8")
            try:
                _put(table, self.out)
                _put(text, statement)
            except BaseException:  # a full disk, or Ctrl-C
                if _is_in_place(table, self.out) and not _is_in_place(text, statement):
                    self.out.unlink()
                raise
        except OSError as error:
            raise VesperError(
                f"{self.out}: cannot be written ({error.strerror or error}); what was charged "
                f"stays charged"
            ) from None


@contextmanager
def new_export_file(out: Path) -> Iterator[ExportFile]:
    """Open a path to write to, checked before anything is charged.

    Raises:
        InputError: the file or its statement already exists, or the folder cannot be written.
    """
    if out.suffix != ".parquet":
        raise InputError(f"--out: expected a name that ends in .parquet, got '{out.name}'")
    for path in (out, statement_path(out)):
        if os.path.lexists(path):
            raise InputError(
                f"{path}: already exists and will not be overwritten; choose another path"
            )
    with ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(partial_folder(out.parent, f".{out.stem}.partial-"))
        except OSError as error:
            raise InputError(
                f"{out}: cannot be written ({error.strerror}); choose another path"
            ) from None
        yield ExportFile(out, folder)


def _write_table(path: Path, ids: Ids, columns: ExportColumns, progress: Progress) -> None:
    """Write without compression, so that the size of the file follows from public sizes alone."""
    kind = pa.int64() if ids.are_integers else pa.string()  # joins with other tables
    fields = [("id", kind), *((name, pa.float32()) for name in columns)]
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, len(ids), ROWS):
            end = min(start + ROWS, len(ids))
            block: list[Column] = [ids.values.slice(start, end - start).cast(kind)]
            block += [pa.array(values[start:end]) for values in columns.values()]
            writer.write_table(pa.Table.from_arrays(block, schema=schema))
            progress("writing released features", end, len(ids))


def _put(source: Path, target: Path) -> None:
    """Move a file into place and sync it to disk, without overwriting anything."""
    _sync(source)
    try:
        os.link(source, target)  # unlike a rename, fails if the target exists
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise
        source.rename(target)
    _sync(target.parent)


def _is_in_place(source: Path, target: Path) -> bool:
    """Whether a file that `_put` was to move is at its target."""
    return not source.exists() or (target.exists() and source.samefile(target))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
