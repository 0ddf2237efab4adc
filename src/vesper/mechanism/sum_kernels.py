"""The loop behind `neighbor_sum.py`: rows shared out over threads, columns over parts of lanes.

    width       1      2, 3      4 .. 7      8 .. 15      16 and more
    lanes       1      2         4           8            16, at most four parts at a time

The last part of a row ends where the row ends, over columns that another part has summed too: no
byte outside a message is ever read. Compiled by Numba on first use.
"""

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import NDArray

from vesper.graph import team
from vesper.graph.graph import Neighbors
from vesper.graph.team import Work, finish, take
from vesper.mechanism.grid import Messages
from vesper.mechanism.lanes import add_messages

ROWS = 1024
"""Receivers a piece: large enough to be worth taking, small enough to share evenly."""

TOGETHER = 64
"""Columns summed at a time: four parts of sixteen lanes."""


def sums_of_rows(
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    messages: Messages,
    receivers: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Sum messages over the neighbours of each receiver, on several threads."""
    width = messages.shape[1]
    flat = messages.reshape(-1)
    flat.setflags(write=False)  # as workers of an engine get it: compiled once for both
    out = np.empty((len(receivers), width), dtype=np.int32)
    team.run(
        sum_rows,
        indptr,
        neighbors,
        flat,
        width,
        receivers,
        out.reshape(-1),
        num_pieces=-(-len(receivers) // ROWS) if width else 0,
        num_threads=get_num_threads(),
    )
    return out


@njit(cache=True, nogil=True)
def sum_rows(
    work: Work,
    seat: int,
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    flat: NDArray[np.int8],
    width: int,
    receivers: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the sum of message[u] over the neighbours u of receivers[k] into row k of out."""
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS, min((piece + 1) * ROWS, len(receivers))):
            start, stop = indptr[receivers[k]], indptr[receivers[k] + 1]
            if width < 16:
                _sum_few(neighbors, start, stop, flat, width, out, k * width)
            else:
                _sum_many(neighbors, start, stop, flat, width, out, k * width)
        finish(work)
        piece = take(work)


@njit(cache=True, nogil=True)
def _sum_few(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of fewer than 16 columns."""
    if width >= 8:
        add_messages(neighbors, start, stop, flat, width, 0, width - 8, out, at, 8, 2)
    elif width >= 4:
        add_messages(neighbors, start, stop, flat, width, 0, width - 4, out, at, 4, 2)
    elif width >= 2:
        add_messages(neighbors, start, stop, flat, width, 0, width - 2, out, at, 2, 2)
    else:
        add_messages(neighbors, start, stop, flat, width, 0, 0, out, at, 1, 1)


@njit(cache=True, nogil=True)
def _sum_many(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of 16 columns or more, up to `TOGETHER` of them at a time."""
    for column in range(0, width, TOGETHER):
        first = min(column, width - 16)
        last = min(column + TOGETHER, width) - 16
        if last - first > 32:
            add_messages(neighbors, start, stop, flat, width, first, last, out, at, 16, 4)
        elif last - first > 16:
            add_messages(neighbors, start, stop, flat, width, first, last, out, at, 16, 3)
        elif last > first:
            add_messages(neighbors, start, stop, flat, width, first, last, out, at, 16, 2)
        else:
            add_messages(neighbors, start, stop, flat, width, first, last, out, at, 16, 1)
