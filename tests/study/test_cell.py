"""Which cells still have to be run."""

from collections.abc import Callable
from typing import Any

import pytest

from vesper.study.cell import Cell, CellResult, datasets_of, needs_no_epsilon, newest, unfinished

CELL = Cell("cora", "certified", 1.0, 0)


@pytest.mark.parametrize(
    ("method", "once"), [("mlp", True), ("gin", True), ("certified", False), ("gap", False)]
)
def test_methods_that_need_no_epsilon_are_those_without_noise(method: str, once: bool) -> None:
    assert needs_no_epsilon(method) == once


@pytest.mark.parametrize(
    ("cell", "facts", "to_do"),
    [
        (CELL, {}, False),
        (CELL, {"settings": "other"}, True),
        (Cell("cora", "certified", 1.0, 1), {}, True),
        (Cell("cora", "certified", 1.0, 0, "D=20"), {}, True),
        (CELL, {"test": None, "failed": "InputError"}, True),
        (CELL, {"test": None, "limit": 60.0}, False),
        (CELL, {"test": None, "limit": 59.0}, True),
    ],
)
def test_finished_cells_are_not_run_again(
    cell: Cell, facts: dict[str, Any], to_do: bool, line: Callable[..., CellResult]
) -> None:
    left = unfinished([CELL], [line(cell, **facts)], settings={CELL: "s"}, limit=60.0)
    assert left == ([CELL] if to_do else [])


def test_the_newest_result_of_a_cell_counts(line: Callable[..., CellResult]) -> None:
    other = Cell("pubmed", "mlp", 1.0, 0)
    lines = newest([line(CELL, test=1.0), line(other), line(CELL, test=2.0)])
    assert [each.test for each in lines] == [2.0, 50.0]
    assert datasets_of([CELL, other, CELL]) == ["cora", "pubmed"]


def test_a_histogram_counts_as_a_result(line: Callable[..., CellResult]) -> None:
    assert line(CELL, test=None, histogram=(1.0,)).is_measured
    assert not line(CELL, test=None).is_measured
    assert str(Cell("cora", "gin", 4.0, 1, "D=20")) == "cora, D=20, epsilon 4, seed 1"
