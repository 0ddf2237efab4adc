"""Messages laid out so that reading one touches as few cache lines as it can.

    width         1 .. 16     17 .. 32     33 .. 64     more
    bytes a row   width       32           64           whole lines, where that saves reads

A sum over neighbours waits for memory, line by line. A row of 47 bytes anywhere lies on 1.7 lines,
one of 64 that starts with a line on a single one (docs/decisions/0015).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.mechanism.grid import Messages, refuse_other_types

LINE = 64
"""Bytes of a cache line."""

WORTH_IT = 0.25
"""Lines a message, saved on average, from which on rows are filled up."""


def stride_of(width: int) -> int:
    """Bytes from one message to the next.

    >>> [stride_of(width) for width in (3, 16, 17, 47, 64, 65, 100)]
    [3, 16, 32, 64, 64, 65, 128]
    """
    lines = max(1, -(-width // LINE))
    anywhere = 1 + (width - 1) / LINE  # lines that a row touches on average
    if anywhere - lines < WORTH_IT:
        return width
    return LINE // 2 if width <= LINE // 2 else LINE * lines


def line_up(messages: Messages) -> Messages:
    """Copy messages to where rows start as they should; what fills rows up is 0.

    Raises:
        InputError: they are not int8, and a copy would change them.
    """
    refuse_other_types(messages)
    num_nodes, width = messages.shape
    stride = stride_of(width)
    room = np.zeros(num_nodes * stride + LINE, dtype=np.int8)
    start = -room.ctypes.data % LINE
    rows = room[start : start + num_nodes * stride].reshape(num_nodes, stride)
    rows[:, :width] = messages
    return rows[:, :width]


def whole_rows(messages: Messages) -> NDArray[np.int8]:
    """Give messages with what fills rows up: (num_nodes, stride); lined up first, if need be."""
    if not _is_lined_up(messages):
        messages = line_up(messages)
    num_nodes, stride = len(messages), stride_of(messages.shape[1])
    rows: NDArray[np.int8] = np.lib.stride_tricks.as_strided(
        messages, (num_nodes, stride), (stride, 1), writeable=False
    )
    return rows


def _is_lined_up(messages: Messages) -> bool:
    """Whether `line_up` made them: then what fills rows up is theirs too."""
    num_nodes, width = messages.shape
    stride, room = stride_of(width), messages.base
    if not isinstance(room, np.ndarray) or room.ndim != 1 or room.dtype != np.int8:
        return False
    start = -room.ctypes.data % LINE
    return (
        len(room) == num_nodes * stride + LINE
        and messages.strides == (stride, 1)
        and messages.ctypes.data == room.ctypes.data + start
    )
