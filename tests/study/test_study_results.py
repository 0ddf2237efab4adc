"""Lines of the journal survive a crash at any byte."""

import json
import math
from collections.abc import Callable
from pathlib import Path

from vesper.study.cell import Cell, CellResult
from vesper.study.study_results import append_line, read_lines

CELL = Cell("cora", "certified", 1.0, 0)
INFINITE = Cell("cora", "mlp", math.inf, 0)


def test_lines_are_read_as_written_and_the_newest_counts(
    tmp_path: Path, line: Callable[..., CellResult]
) -> None:
    path = tmp_path / "j.jsonl"
    assert read_lines(path) == []
    histogram = line(INFINITE, histogram=(1.0, 2.0), decoder="gru", hops=2)
    for one in (line(CELL, test=1.0), histogram, line(CELL, test=2.0)):
        append_line(path, one)
    assert read_lines(path) == [line(CELL, test=2.0), histogram]
    for text in path.read_text().splitlines():
        json.loads(text, parse_constant=lambda word: 1 / 0)  # JSON has no infinity


def test_a_line_cut_off_at_any_byte_is_skipped_and_not_appended_to(
    tmp_path: Path, line: Callable[..., CellResult]
) -> None:
    whole, other = tmp_path / "whole.jsonl", Cell("cora", "certified", 4.0, 0)
    append_line(whole, line(CELL))
    first = len(whole.read_bytes())
    append_line(whole, line(other))
    written = whole.read_bytes()
    for length in range(first + 1, len(written) - 1):
        torn = tmp_path / "torn.jsonl"
        torn.write_bytes(written[:length])
        assert read_lines(torn) == [line(CELL)]
        append_line(torn, line(INFINITE))
        assert read_lines(torn) == [line(CELL), line(INFINITE)]


def test_lines_of_earlier_versions_lack_new_fields(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text(
        '{"dataset": "cora", "method": "gap", "epsilon": "inf", "seed": 0, "settings": "s", '
        '"version": "0", "code": "c", "plan": null, "test": 7.5, "limit": null, "failed": null}\n'
    )
    (line,) = read_lines(path)
    assert (line.cell, line.test) == (Cell("cora", "gap", math.inf, 0), 7.5)
