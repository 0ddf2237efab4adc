"""Read a Parquet table in batches; every error names the file and the column."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vesper.errors import InputError, first_three


class ParquetRows:
    """One Parquet file that has the columns `needed`."""

    def __init__(self, path: Path, *, needed: Sequence[str]) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(f"{path}: expected this file, found none; add it")
        try:
            with pq.ParquetFile(path) as file:
                self.schema = file.schema_arrow
                self.num_rows = file.metadata.num_rows
        except (OSError, pa.ArrowInvalid) as error:
            raise self._broken(error) from None
        missing = [name for name in needed if name not in self.schema.names]
        if missing:
            shown = ", ".join(self.schema.names[:8])
            raise InputError(
                f"{path}: expected the columns {', '.join(needed)}; {', '.join(missing)} missing, "
                f"found {shown}{', ...' if len(self.schema.names) > 8 else ''}; rename or add them"
            )

    def batches(self, columns: Sequence[str], rows_at_once: int) -> Iterator[pa.RecordBatch]:
        """The named columns, in order of rows."""
        try:
            with pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(rows_at_once, columns=list(columns))
        except (OSError, pa.ArrowInvalid) as error:
            raise self._broken(error) from None

    def whole_numbers(self, batch: pa.RecordBatch, column: str, first: int) -> NDArray[np.int64]:
        """One column of a batch that starts at row `first`: whole numbers, none missing."""
        values = batch.column(column)
        if not pa.types.is_integer(values.type):
            raise InputError(
                f"{self.path}, column {column}: expected whole numbers, found {values.type}; "
                f"change its type"
            )
        if values.null_count:
            rows = first + 1 + np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            raise InputError(
                f"{self.path}, column {column}: expected a number in every row, found "
                f"{values.null_count} empty ({first_three(f'row {row}' for row in rows)}); "
                f"fill or drop these rows"
            )
        try:
            return np.asarray(values.cast(pa.int64()).to_numpy(), np.int64)
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.path}, column {column}: expected numbers that fit 64 bits with sign, found "
                f"larger ones; number them anew"
            ) from None

    def _broken(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: not a readable Parquet file ({error}); write it again")
