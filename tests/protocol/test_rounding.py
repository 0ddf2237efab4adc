"""Stochastic rounding: unbiased, within one gap, repeatable for the same key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from vesper.errors import VesperError
from vesper.protocol.rounding import LARGEST_STEP, Rounding, WireFormat, to_float16, to_int8

FLOATS = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.integers(1, 4)),
    elements=st.floats(-60000, 60000, width=32),
)
DRAWS = 20_000


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(FLOATS, st.integers(0, 2**32))
def test_float16_is_one_of_the_two_around(values: np.ndarray, seed: int) -> None:
    rounded = to_float16(values, generator(seed))
    nearest = values.astype(np.float16)
    towards = np.where(values > nearest, np.inf, -np.inf).astype(np.float16)
    other = np.where(values == nearest, nearest, np.nextafter(nearest, towards))
    assert ((rounded == nearest) | (rounded == other)).all()


@given(FLOATS, st.integers(0, 2**32))
def test_int8_is_less_than_a_step_away(values: np.ndarray, seed: int) -> None:
    steps, scales = to_int8(values, generator(seed))
    assert np.abs(steps.astype(int)).max(initial=0) <= LARGEST_STEP
    assert np.isfinite(scales).all()
    assert (np.abs(steps * scales.astype(np.float64) - values) <= scales * (1 + 1e-6)).all()


@pytest.mark.parametrize("value", [0.3, -1.0001, 1e-7, 3e-8, -2047.3, 65503.0])
def test_float16_has_the_right_mean(value: float) -> None:
    values = np.full(DRAWS, value, dtype=np.float32)
    rounded = to_float16(values, generator()).astype(np.float64)
    gap = np.ptp(rounded)
    assert gap > 0
    assert abs(rounded.mean() - values[0].astype(np.float64)) < 4 * gap / 2 / DRAWS**0.5
    assert abs(np.float64(np.float16(value)) - values[0]) > 4 * gap / 2 / DRAWS**0.5  # can fail


def test_int8_has_the_right_mean() -> None:
    values = np.tile(np.array([[0.2, -31.0, 1e-30]], dtype=np.float32), (DRAWS, 1))
    values[0] = [1.0, 127.0, 1.0]
    steps, scales = to_int8(values, generator())
    rounded = (steps * scales.astype(np.float64))[1:]
    slack = 4 * scales / 2 / DRAWS**0.5
    assert (np.abs(rounded.mean(axis=0) - values[1]) < slack + 1e-6 * np.abs(values[1])).all()


def test_edge_cases() -> None:
    zeros = np.zeros((3, 2), dtype=np.float32)
    steps, scales = to_int8(zeros, generator())
    assert not steps.any()
    assert not scales.any()
    assert to_int8(zeros[:0], generator())[1].shape == (2,)
    exact = np.array([0.0, 1.0, -2.5, 65504.0, 2.0**-24], dtype=np.float32)
    assert np.array_equal(to_float16(exact, generator()).astype(np.float32), exact)
    with pytest.raises(VesperError, match="does not fit float16"):
        to_float16(np.array([7e4], dtype=np.float32), generator())


def test_draws_are_keyed_by_seed_role_and_step() -> None:
    def draw(seed: int, role: int, step: int) -> float:
        return Rounding(WireFormat.INT8, seed=seed, role=role).random_generator(step).random()

    assert draw(1, 0, 5) == draw(1, 0, 5)
    keys = [(1, 0, 5), (1, 1, 5), (1, 0, 6), (2, 0, 5), (2**62, 0, 5)]
    assert len({draw(*key) for key in keys}) == len(keys)
