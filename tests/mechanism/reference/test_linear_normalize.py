"""Normalised rows, including zero, tiny and non-finite ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.mechanism.reference.linear import normalize_rows


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), st.integers(-300, 300))
def test_every_row_gets_the_length_and_keeps_its_direction(
    seed: int, norm: float, exponent: int
) -> None:
    rows = np.random.default_rng(seed).standard_normal((5, 4))
    out = normalize_rows(rows * 10.0**exponent, norm=norm)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), norm)
    np.testing.assert_allclose(out / norm, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_zero_stays_zero_and_the_shortest_row_is_not_lost() -> None:
    out = normalize_rows(np.array([[0.0, 0.0], [5e-324, 0.0], [-0.0, 2.0]]))
    assert out.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert normalize_rows(np.zeros((0, 3))).shape == (0, 3)


def test_refuses_rows_that_are_not_finite_and_invalid_norms() -> None:
    with pytest.raises(InputError, match=r"2 rows that are not finite \(first 2: 0, 2\)"):
        normalize_rows(np.array([[np.nan, 0.0], [1.0, 1.0], [np.inf, 0.0]]))
    with pytest.raises(InputError, match="norm"):
        normalize_rows(np.ones((1, 1)), norm=0.0)
