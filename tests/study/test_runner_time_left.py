"""Time left: from cells that are alike."""

from collections.abc import Callable

import pytest

from vesper.study.cell import Cell, Line
from vesper.study.runner import Expected


def test_a_cell_takes_as_long_as_others_like_it(line: Callable[..., Line]) -> None:
    gin, mlp = Cell("cora", "gin", 4.0, 0), Cell("cora", "mlp", 4.0, 0)
    expected = Expected([line(gin, seconds=10.0), line(mlp, seconds=2.0)])
    assert expected.of(Cell("cora", "gin", 8.0, 1)) == 10.0
    assert expected.of(Cell("cora", "gap", 8.0, 1)) == 6.0
    assert Expected([]).of(gin) == 0.0
    expected.learn(line(gin, seconds=10.0))
    # two workers: ten seconds of work in five of the clock
    assert expected.left([gin, mlp], elapsed=5.0) == pytest.approx(6.0)
