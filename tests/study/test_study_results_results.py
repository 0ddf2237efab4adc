"""The journal is merged into the table, and a crash at any moment loses no line."""

import math
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.study.cell import Cell, CellResult
from vesper.study.study_results import (
    JOURNAL,
    SCHEMA,
    TABLE,
    append_line,
    merge_journal,
    read_results,
)

CELL = Cell("cora", "certified", 1.0, 0, "D=5")


def test_the_journal_is_merged_into_the_table(
    tmp_path: Path, line: Callable[..., CellResult]
) -> None:
    merge_journal(tmp_path)
    assert list(tmp_path.iterdir()) == []
    infinite = line(Cell("cora", "mlp", math.inf, 3), test=None, histogram=(1.0, 2.5), hops=2)
    append_line(tmp_path / JOURNAL, line(CELL, test=1.0))
    append_line(tmp_path / JOURNAL, infinite)
    merge_journal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [TABLE]
    assert read_results(tmp_path) == [line(CELL, test=1.0), infinite]
    append_line(tmp_path / JOURNAL, line(CELL, test=2.0))
    assert read_results(tmp_path) == [line(CELL, test=2.0), infinite]
    merge_journal(tmp_path)
    assert pq.read_table(tmp_path / TABLE)["test"].to_pylist() == [2.0, None]


def test_a_crash_between_table_and_journal_changes_nothing(
    tmp_path: Path, line: Callable[..., CellResult]
) -> None:
    append_line(tmp_path / JOURNAL, line(CELL))
    journal = (tmp_path / JOURNAL).read_bytes()
    merge_journal(tmp_path)
    (tmp_path / JOURNAL).write_bytes(journal)
    assert read_results(tmp_path) == [line(CELL)]


def test_every_field_has_a_column() -> None:
    assert set(SCHEMA.names) == set(CellResult.__dataclass_fields__)


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text("no parquet")
    with pytest.raises(InputError, match="expected the results of a study"):
        read_results(tmp_path)
