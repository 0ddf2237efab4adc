"""Results of a study as Parquet: the journal is folded in, and then gone.

    lines = results.parquet, overlaid by journal.jsonl

The table is replaced in one move before the journal is removed, so that whatever ends the process
in between, both hold the same lines.

The journal of a study: one line of JSON a finished cell, on disk before the next is begun.

A line that a crash has torn is left out when read, and not built upon when the next is written.
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
from vesper.study.cell import CellResult, newest


def read_lines(path: Path) -> list[CellResult]:
    """Read what is finished; the newest line of a cell counts."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            facts: dict[str, Any] = json.loads(text)
            found.append(line_of(facts))
        except (ValueError, TypeError, KeyError):
            continue
    return newest(found)


def append_line(path: Path, line: CellResult) -> None:
    """Write one line, on disk before this returns."""
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        torn = b"\n" if file.read() not in (b"", b"\n") else b""
        file.write(torn + json.dumps(facts_of(line)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def facts_of(line: CellResult) -> dict[str, Any]:
    """A line as JSON can hold it: no infinity, and nothing that is not known."""
    facts = {key: value for key, value in asdict(line).items() if value is not None}
    return facts | {"epsilon": "inf" if math.isinf(line.epsilon) else line.epsilon}


def line_of(facts: dict[str, Any]) -> CellResult:
    """The line that `facts_of` was made of."""
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
    """Read everything that is finished in a study folder.

    Raises:
        InputError: `results.parquet` is not what a study writes.
    """
    path = folder / TABLE
    before: list[CellResult] = []
    if path.exists():
        try:
            before = [line_of(facts) for facts in pq.read_table(path).to_pylist()]
        except (pa.ArrowException, OSError, TypeError, KeyError):
            raise InputError(
                f"{path}: expected the results of a study, found something else; remove it, or "
                f"give another folder"
            ) from None
    return newest([*before, *read_lines(folder / JOURNAL)])


def merge_journal(folder: Path) -> None:
    """Move what the journal says into the table."""
    lines = read_results(folder)
    if not lines:
        return
    aside = folder / f".{TABLE}.partial"
    pq.write_table(pa.Table.from_pylist([asdict(line) for line in lines], schema=SCHEMA), aside)
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(aside, folder / TABLE)
    (folder / JOURNAL).unlink(missing_ok=True)
