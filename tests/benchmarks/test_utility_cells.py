"""Which cells there are, in which order, and which are still to do."""

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.utility_cells import (
    Cell,
    Line,
    all_cells,
    append_line,
    datasets_in,
    needs_no_epsilon,
    read_lines,
    unfinished,
)


def line(
    cell: Cell,
    *,
    settings: str = "s",
    test: float | None = 50.0,
    failed: str | None = None,
    limit: float | None = None,
) -> Line:
    return Line(
        dataset=cell.dataset,
        method=cell.method,
        epsilon=cell.epsilon,
        seed=cell.seed,
        settings=settings,
        version="1",
        code="c",
        test=test,
        failed=failed,
        limit=limit,
    )


CELL = Cell("cora", "vesper", 1.0, 0)


def test_small_sets_come_first(tmp_path: Path) -> None:
    for name, rows in {"a_large": 9, "b_small": 2}.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": range(rows)}), tmp_path / name / "nodes.parquet")
    (tmp_path / "README").write_text("no set")
    assert datasets_in(tmp_path) == {"b_small": 2, "a_large": 9}


def test_a_seed_of_everything_first_and_what_needs_no_epsilon_once() -> None:
    cells = all_cells(["small", "large"], ["vesper", "mlp"], [1.0, 4.0], [0, 1])
    assert len(cells) == len(set(cells)) == 2 * 2 * 3
    assert [cell.seed for cell in cells] == [0] * 6 + [1] * 6
    assert [cell.dataset for cell in cells[:6]] == ["small"] * 3 + ["large"] * 3
    assert {cell.epsilon for cell in cells if cell.method == "mlp"} == {math.inf}
    assert {cell.epsilon for cell in cells if cell.method == "vesper"} == {1.0, 4.0}


@pytest.mark.parametrize(
    ("method", "once"), [("mlp", True), ("gin", True), ("vesper", False), ("gap", False)]
)
def test_what_needs_no_epsilon_follows_from_its_promise(method: str, once: bool) -> None:
    assert needs_no_epsilon(method) == once


def test_lines_are_read_back_the_newest_counts(tmp_path: Path) -> None:
    path = tmp_path / "u.jsonl"
    assert read_lines(path) == []
    infinite = Cell("cora", "mlp", math.inf, 0)
    for one in (line(CELL, test=1.0), line(infinite), line(CELL, test=2.0)):
        append_line(path, one)
    assert read_lines(path) == [line(CELL, test=2.0), line(infinite)]
    assert "Infinity" not in path.read_text()


def test_a_torn_line_is_left_out_and_not_built_upon(tmp_path: Path) -> None:
    path = tmp_path / "u.jsonl"
    append_line(path, line(CELL))
    with path.open("a") as file:
        file.write('{"dataset": "cora", "met')
    assert read_lines(path) == [line(CELL)]
    other = Cell("cora", "vesper", 4.0, 0)
    append_line(path, line(other))
    assert read_lines(path) == [line(CELL), line(other)]


@pytest.mark.parametrize(
    ("finished", "to_do"),
    [
        (line(CELL), False),
        (line(CELL, settings="other"), True),
        (line(Cell("cora", "vesper", 1.0, 1)), True),
        (line(CELL, test=None, failed="InputError"), True),
        (line(CELL, test=None, limit=60.0), False),
        (line(CELL, test=None, limit=59.0), True),
    ],
)
def test_what_is_finished_is_not_run_again(finished: Line, to_do: bool) -> None:
    left = unfinished([CELL], [finished], settings={CELL: "s"}, limit=60.0)
    assert left == ([CELL] if to_do else [])
