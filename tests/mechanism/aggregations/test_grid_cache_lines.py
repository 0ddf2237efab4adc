import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.aggregations.grid import LINE, align_rows, padded_rows, stride_of


def some_messages(width: int) -> NDArray[np.int8]:
    return np.random.default_rng(0).integers(-64, 65, (77, width)).astype(np.int8)


def lines_of(width: int, stride: int, count: int = 640) -> float:
    """Cache lines that rows touch, on average, if the first row is aligned."""
    first = np.arange(count) * stride // LINE
    last = (np.arange(count) * stride + width - 1) // LINE
    return float((last - first + 1).mean())


@pytest.mark.parametrize("width", range(1, 200))
def test_rows_touch_nearly_as_few_lines_as_possible(width: int) -> None:
    stride = stride_of(width)
    assert width <= stride <= max(2 * width, 32)
    assert lines_of(width, stride) < -(-width // LINE) + 0.25
    assert lines_of(width, stride) <= lines_of(width, width)


@pytest.mark.parametrize("width", [0, 1, 3, 16, 17, 47, 64, 65, 130])
def test_alignment_does_not_change_messages(width: int) -> None:
    messages = some_messages(width)
    aligned = align_rows(messages)
    assert np.array_equal(aligned, messages)
    assert not np.shares_memory(aligned, messages)
    assert aligned.ctypes.data % LINE == 0 or not width
    rows = padded_rows(messages)
    assert np.array_equal(rows[:, :width], messages)
    assert not rows[:, width:].any()
    assert rows.flags.c_contiguous
    assert not rows.flags.writeable


def test_aligned_messages_are_not_copied_again() -> None:
    aligned = align_rows(some_messages(47))
    assert np.shares_memory(padded_rows(aligned), aligned)
    assert padded_rows(aligned).shape == (77, 64)
    assert np.array_equal(padded_rows(aligned[:, ::-1])[:, :47], aligned[:, ::-1])


def test_padding_of_other_arrays_is_never_read() -> None:
    table = np.zeros(5 * 64 + LINE, dtype=np.int8)
    start = -table.ctypes.data % LINE
    wide = table[start : start + 5 * 64].reshape(5, 64)
    wide[:, 47:] = 9  # columns that do not belong to the messages
    for foreign in (wide.copy()[:, :47], wide[1:, :47]):
        rows = padded_rows(foreign)
        assert not np.shares_memory(rows, foreign)
        assert not rows[:, 47:].any()


def test_other_types_are_refused_not_rounded() -> None:
    with pytest.raises(InputError, match="int8"):
        align_rows(np.full((2, 2), 300, dtype=np.int16))
