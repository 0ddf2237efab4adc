import numpy as np
import pytest

from vesper.datasets.prepare.event_groups import (
    DAY,
    active_days_by,
    busiest_day_by,
    count_by,
    largest_by,
    ratio,
    signed_log,
    smallest_by,
    spread_by,
)

GROUP = np.array([0, 0, 0, 2, 2])
VALUE = np.array([1.0, -3.0, 5.0, -2.0, -2.0])


def test_counts_and_sums() -> None:
    assert count_by(GROUP, 4).tolist() == [3, 0, 2, 0]
    assert count_by(GROUP, 4, VALUE).tolist() == [3, 0, -4, 0]


def test_extremes_of_an_empty_group_are_zero_and_others_keep_their_sign() -> None:
    assert largest_by(GROUP, 4, VALUE).tolist() == [5, 0, -2, 0]
    assert smallest_by(GROUP, 4, VALUE).tolist() == [-3, 0, -2, 0]


def test_spread_is_the_standard_deviation() -> None:
    assert spread_by(GROUP, 3, VALUE) == pytest.approx([np.std([1, -3, 5]), 0, 0])


def test_days() -> None:
    seconds = np.array([0, DAY - 1, DAY, -1, 10 * DAY])
    assert active_days_by(GROUP, 4, seconds).tolist() == [2, 0, 2, 0]
    assert busiest_day_by(GROUP, 4, seconds).tolist() == [2, 0, 1, 0]
    nothing = np.empty(0, dtype=np.int64)
    assert active_days_by(nothing, 2, nothing).tolist() == [0, 0]


def test_ratio_of_nothing_is_zero() -> None:
    assert ratio(np.array([1.0, 1.0]), np.array([0.0, 4.0])).tolist() == [0, 0.25]


def test_signed_log_is_an_odd_function() -> None:
    assert signed_log(np.array([-9.0, 0.0, 9.0])) == pytest.approx([-np.log(10), 0, np.log(10)])
