"""Estimates of the remaining time from similar cells."""

from collections.abc import Callable

import pytest

from vesper.study.cell import Cell, CellResult
from vesper.study.runner import TimeEstimate


def test_a_cell_is_expected_to_take_as_long_as_similar_ones(
    line: Callable[..., CellResult],
) -> None:
    gin, mlp = Cell("cora", "gin", 4.0, 0), Cell("cora", "mlp", 4.0, 0)
    estimate = TimeEstimate([line(gin, seconds=10.0), line(mlp, seconds=2.0)])
    assert estimate.seconds_of(Cell("cora", "gin", 8.0, 1)) == 10.0
    assert estimate.seconds_of(Cell("cora", "gap", 8.0, 1)) == 6.0
    assert TimeEstimate([]).seconds_of(gin) == 0.0
    estimate.add_result(line(gin, seconds=10.0))
    # two workers: ten seconds of work in five seconds of wall-clock time
    assert estimate.left([gin, mlp], elapsed=5.0) == pytest.approx(6.0)
