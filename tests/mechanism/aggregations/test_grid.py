from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.mechanism.aggregations.grid import (
    ROWS_PER_BLOCK,
    STEPS,
    from_grid,
    refuse_long,
    squares,
    to_grid,
)


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_unit_rows_stay_within_the_bound_and_close(width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(50, width))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    grid = to_grid(rows)
    assert squares(grid).max() <= STEPS**2
    assert np.abs(grid / STEPS - rows).max() <= 2 / STEPS
    assert (np.sign(grid) * np.sign(rows) >= 0).all()


def test_edge_cases() -> None:
    assert to_grid(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0, 0, 0]]
    assert to_grid(np.array([[1.0, 0.0]], dtype=np.float32)).tolist() == [[STEPS, 0]]
    barely_long = np.array([[1.000005, 0.0]], dtype=np.float32)
    assert to_grid(barely_long).tolist() == [[STEPS, 0]]


@pytest.mark.parametrize("row", [[1.1, 0.0], [0.8, 0.8], [np.nan, 0.0], [np.inf, 0.0]])
def test_long_and_broken_rows_are_refused(row: list[float]) -> None:
    with pytest.raises(InputError):
        to_grid(np.array([row], dtype=np.float32))


def test_a_grid_from_elsewhere_is_checked_too() -> None:
    refuse_long(np.array([[STEPS, 0]], dtype=np.int8))
    with pytest.raises(InputError, match="sum of squares"):
        refuse_long(np.array([[STEPS, 1]], dtype=np.int8))
    wide: Any = np.zeros((1, 2), dtype=np.int16)
    with pytest.raises(InputError, match="int8"):
        refuse_long(wide)


def test_the_result_does_not_depend_on_blocks() -> None:
    rows = np.random.default_rng(0).normal(size=(2 * ROWS_PER_BLOCK + 3, 2))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    whole = np.concatenate([to_grid(rows[k : k + 1000]) for k in range(0, len(rows), 1000)])
    assert (to_grid(rows) == whole).all()
    rows[-1] = [2.0, 0.0]
    with pytest.raises(InputError, match="norm at most 1, got 2"):
        to_grid(rows)
    assert to_grid(rows[:0]).shape == (0, 2)


def test_sums_become_units_in_place() -> None:
    values = np.random.default_rng(0).integers(-(2**20), 2**20, size=(2 * ROWS_PER_BLOCK + 3, 2))
    sums = values.astype(np.int32)
    units = from_grid(sums)
    assert units.dtype == np.float32
    assert np.shares_memory(units, sums)
    assert (units * STEPS == values).all()
