"""Results of a study on disk: a Parquet table, and a journal that is merged into it.

    results = results.parquet, overridden by journal.jsonl

The journal has one line of JSON per finished cell, which is on disk before the next cell starts. A
line that a crash has cut off is skipped when read, and the next line is not appended to it.

The table is replaced atomically before the journal is removed, so that a crash in between leaves
the same results in both.
"""

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vesper.errors import InputError
from vesper.files import replacement_of
from vesper.study.cell import CellResult, newest


def read_lines(path: Path) -> list[CellResult]:
    """Read finished cells; the newest line of a cell counts."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            facts: dict[str, Any] = json.loads(text)
            lines.append(line_of(facts))
        except (ValueError, TypeError, KeyError):
            continue
    return newest(lines)


def append_line(path: Path, line: CellResult) -> None:
    """Append one line; it is on disk when this returns."""
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        line_break = b"\n" if file.read() not in (b"", b"\n") else b""
        file.write(line_break + json.dumps(facts_of(line)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def facts_of(line: CellResult) -> dict[str, Any]:
    """Convert a result to JSON values: infinity as a string, without fields that are None."""
    facts = {key: value for key, value in asdict(line).items() if value is not None}
    return facts | {"epsilon": "inf" if math.isinf(line.epsilon) else line.epsilon}


def line_of(facts: dict[str, Any]) -> CellResult:
    """Restore a result from `facts_of`."""
    histogram = facts.get("histogram")
    known = {"histogram": tuple(histogram)} if histogram is not None else {}
    return CellResult(**facts | {"epsilon": float(facts["epsilon"])} | known)


JOURNAL, TABLE = "journal.jsonl", "results.parquet"

_COLUMNS: dict[str, pa.DataType] = {
    "dataset": pa.string(),
    "series": pa.string(),
    "method": pa.string(),
    "measure": pa.string(),
    "plan": pa.string(),
    "epsilon": pa.float64(),
    "decoder": pa.string(),
    "max_degree": pa.int64(),
    "min_degree": pa.int64(),
    "batch_size": pa.int64(),
    "hops": pa.int64(),
    "seed": pa.int64(),
    "metric": pa.string(),
    "validation": pa.float64(),
    "test": pa.float64(),
    "histogram": pa.list_(pa.float64()),
    "chosen_stage": pa.int64(),
    "seconds": pa.float64(),
    "limit": pa.float64(),
    "failed": pa.string(),
    "settings": pa.string(),
    "version": pa.string(),
    "code": pa.string(),
}
SCHEMA = pa.schema(_COLUMNS)


def read_results(folder: Path) -> list[CellResult]:
    """Read all finished cells of a study folder.

    Raises:
        InputError: `results.parquet` is not the results of a study.
    """
    path = folder / TABLE
    before: list[CellResult] = []
    if path.exists():
        try:
            before = [line_of(facts) for facts in pq.read_table(path).to_pylist()]
        except (pa.ArrowException, OSError, TypeError, KeyError):
            raise InputError(
                f"{path}: expected the results of a study, found something else; remove it, or "
                f"choose another folder"
            ) from None
    return newest([*before, *read_lines(folder / JOURNAL)])


def merge_journal(folder: Path) -> None:
    """Move the results in the journal into the table."""
    lines = read_results(folder)
    if not lines:
        return
    with replacement_of(folder / TABLE) as file:
        pq.write_table(pa.Table.from_pylist([asdict(line) for line in lines], schema=SCHEMA), file)
    (folder / JOURNAL).unlink(missing_ok=True)
