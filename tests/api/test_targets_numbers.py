"""Labels that are numbers: reading, holding out, refusals."""

from typing import Any

import numpy as np
import pytest

from vesper.api.targets import NumberTargets
from vesper.errors import InputError

NUMBERS = NumberTargets("r2")


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        np.array([1, 2.0], dtype=object),
        np.array([1, 2], "u1"),
    ],
)
def test_all_kinds_of_numbers_are_read(values: Any) -> None:
    read = NUMBERS.read(values, np.arange(2))
    assert read.dtype == np.float64
    assert read.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], r"1 labels are missing, NaN or infinite \(first 1: node 1\)"),
        ([-np.inf, 1.0], "node 0"),
        (["a", "b"], "expected numbers, got <U1 .* use Vesper for classes"),
        ([1j, 2.0], "expected numbers, got complex128"),
    ],
)
def test_other_values_are_refused(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NUMBERS.read(np.array(values), np.arange(2))


def test_one_of_every_five_in_sorted_order_is_held_out() -> None:
    labels = np.random.default_rng(0).normal(size=103)
    held_out = NUMBERS.split_validation(labels, seed=0)
    in_order = held_out[np.argsort(labels)]
    assert in_order[:100].reshape(20, 5).sum(axis=1).tolist() == [1] * 20
    assert not in_order[100:].any()
    assert (NUMBERS.split_validation(labels, seed=0) == held_out).all()
    assert (NUMBERS.split_validation(labels, seed=1) != held_out).any()
    assert NUMBERS.split_validation(labels[:3], seed=0).sum() == 1
    assert NUMBERS.split_validation(labels[:1], seed=0).sum() == 0


def test_labels_that_are_all_equal_are_refused() -> None:
    distinct = np.array([0.5, 2.0])
    NUMBERS.refuse_few(distinct, np.array([0, 1, 1, 0]), num_train=2)
    with pytest.raises(InputError, match="train: expected nodes with at least two different"):
        NUMBERS.refuse_few(distinct, np.array([0, 0, 1, 0]), num_train=2)
    with pytest.raises(InputError, match="validation: expected nodes with at least two different"):
        NUMBERS.refuse_few(distinct, np.array([0, 1, 1, 1]), num_train=2)
