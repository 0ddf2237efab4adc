"""Messages rounded to a public integer grid, so that their sums are exact (claim R-GRID).

    grid[u] = truncate(STEPS * m_u)  in int8,   sum of squares <= STEPS^2  for every row

Truncation never makes a row longer, so a row of norm at most 1 stays within the bound; the check
itself uses integers, where nothing is rounded.

Rows are laid out so that reading one touches as few cache lines as possible:

    width           1 .. 16     17 .. 32     33 .. 64     more
    bytes per row   width       32           64           whole lines, where that saves reads

Summing over neighbours is bound by memory access, line by line. A row of 47 bytes at an arbitrary
address spans 1.7 lines on average; one padded to 64 bytes and aligned spans exactly one
(docs/decisions/0015).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError

STEPS = 64
"""Grid steps in one unit."""

ROWS_PER_BLOCK = 1 << 14
"""Rows processed at a time, so that temporary arrays stay small, however large the graph."""

Messages = NDArray[np.int8]


def to_grid(messages: NDArray[np.float32]) -> Messages:
    """Round messages with rows of norm at most 1 to the grid.

    | row | result |
    | --- | --- |
    | zero | zero |
    | norm above 1 by float32 rounding only | shortened until it fits |
    | norm above 1 + 1e-5 | InputError |
    | NaN or infinite | InputError |

    >>> to_grid(np.array([[0.6, -0.8], [0.0, 0.0]], dtype=np.float32)).tolist()
    [[38, -51], [0, 0]]
    """
    grid: Messages = np.empty(messages.shape, dtype=np.int8)  # (num_nodes, width)
    for start in range(0, len(messages), ROWS_PER_BLOCK):
        grid[start : start + ROWS_PER_BLOCK] = _rounded(messages[start : start + ROWS_PER_BLOCK])
    refuse_long(grid)
    return grid


def from_grid(values: NDArray[np.int32], *, steps: int = STEPS) -> NDArray[np.float32]:
    """Return values / steps *in the same memory*: the integers are overwritten.

    >>> from_grid(np.array([[32, -160]], dtype=np.int32)).tolist()
    [[0.5, -2.5]]
    """
    units = values.view(np.float32)  # (num_receivers, width)
    for start in range(0, len(values), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        units[block] = values[block].astype(np.float32) / np.float32(steps)
    return units


def _rounded(messages: NDArray[np.float32]) -> Messages:
    if not np.isfinite(messages).all():
        raise InputError("Expected finite messages; the model that produces them has diverged.")
    norms = np.sqrt(np.square(messages, dtype=np.float64).sum(axis=1))  # (rows,)
    if norms.max() > 1 + 1e-5:
        raise InputError(f"Expected messages of norm at most 1, got {norms.max():.6g}.")
    grid: Messages = np.trunc(messages * np.float32(STEPS)).astype(np.int8)  # (rows, width)
    for row in np.flatnonzero(squares(grid) > STEPS**2):
        largest = int(np.abs(grid[row]).argmax())
        grid[row, largest] -= np.sign(grid[row, largest])
    return grid


def squares(grid: Messages) -> NDArray[np.int64]:
    """Sum of squares of each row, exactly."""
    total: NDArray[np.int64] = np.einsum("vk,vk->v", grid, grid, dtype=np.int64, casting="safe")
    return total


def refuse_long(grid: Messages) -> None:
    """Refuse messages that the bound of R-SUM does not cover."""
    refuse_other_types(grid)
    if len(grid) and int(squares(grid).max()) > STEPS**2:
        raise InputError(f"Expected rows with a sum of squares of at most {STEPS**2}.")


def refuse_other_types(grid: Messages) -> None:
    """Refuse messages that are not int8."""
    if grid.dtype != np.int8:
        raise InputError(f"Expected int8 messages on the grid, got {grid.dtype}.")


LINE = 64
"""Bytes of a cache line."""

MIN_LINES_SAVED = 0.25
"""Cache lines saved per message, on average, from which on rows are padded."""


def stride_of(width: int) -> int:
    """Bytes from one message to the next.

    >>> [stride_of(width) for width in (3, 16, 17, 47, 64, 65, 100)]
    [3, 16, 32, 64, 64, 65, 128]
    """
    lines = max(1, -(-width // LINE))
    unaligned = 1 + (width - 1) / LINE  # lines that an unaligned row touches on average
    if unaligned - lines < MIN_LINES_SAVED:
        return width
    return LINE // 2 if width <= LINE // 2 else LINE * lines


def align_rows(messages: Messages) -> Messages:
    """Copy messages to an aligned buffer; padding is 0.

    Raises:
        InputError: messages are not int8, so that a copy would change them.
    """
    refuse_other_types(messages)
    num_nodes, width = messages.shape
    stride = stride_of(width)
    buffer = np.zeros(num_nodes * stride + LINE, dtype=np.int8)
    start = -buffer.ctypes.data % LINE
    rows = buffer[start : start + num_nodes * stride].reshape(num_nodes, stride)
    rows[:, :width] = messages
    return rows[:, :width]


def padded_rows(messages: Messages) -> NDArray[np.int8]:
    """Return messages with their padding: (num_nodes, stride); aligned first if necessary."""
    if not _is_aligned(messages):
        messages = align_rows(messages)
    num_nodes, stride = len(messages), stride_of(messages.shape[1])
    rows: NDArray[np.int8] = np.lib.stride_tricks.as_strided(
        messages, (num_nodes, stride), (stride, 1), writeable=False
    )
    return rows


def _is_aligned(messages: Messages) -> bool:
    """Whether `align_rows` made the messages, so that the padding belongs to their buffer."""
    num_nodes, width = messages.shape
    stride, buffer = stride_of(width), messages.base
    if not isinstance(buffer, np.ndarray) or buffer.ndim != 1 or buffer.dtype != np.int8:
        return False
    start = -buffer.ctypes.data % LINE
    return (
        len(buffer) == num_nodes * stride + LINE
        and messages.strides == (stride, 1)
        and messages.ctypes.data == buffer.ctypes.data + start
    )
