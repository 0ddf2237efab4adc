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
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    neighbors: Neighbors,
    width: int,
    messages: Messages,
) -> NDArray[np.int32]:
    """Sum messages over the neighbours of each receiver, on several threads.

    Args:
        starts: (num_receivers,) where each one's neighbours start.
        stops: (num_receivers,) and where they stop.
        neighbors: of these receivers, and maybe of others.
        width: entries of a message.
        messages: (num_nodes, width or more), contiguous.
    """
    flat = messages.reshape(-1)
    flat.setflags(write=False)  # as workers of an engine get it: compiled once for both
    out = np.empty((len(starts), width), dtype=np.int32)
    team.run(
        _sum_rows,
        starts,
        stops,
        neighbors,
        flat,
        messages.shape[1],
        width,
        out.reshape(-1),
        num_pieces=-(-len(starts) // ROWS) if width else 0,
        num_threads=get_num_threads(),
    )
    return out


@njit(cache=True, nogil=True)
def _sum_rows(
    work: Work,
    seat: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    neighbors: Neighbors,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
) -> None:
    """Write the sum of message[u] over u in neighbors[starts[k] : stops[k]] into row k of out."""
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS, min((piece + 1) * ROWS, len(starts))):
            if width < 16:
                _sum_few(neighbors, starts[k], stops[k], flat, stride, width, out, k * width)
            else:
                _sum_many(neighbors, starts[k], stops[k], flat, stride, width, out, k * width)
        finish(work)
        piece = take(work)


@njit(cache=True, nogil=True)
def _sum_few(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of fewer than 16 columns."""
    if width >= 8:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 8, out, at, 8, 2)
    elif width >= 4:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 4, out, at, 4, 2)
    elif width >= 2:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 2, out, at, 2, 2)
    else:
        add_messages(neighbors, start, stop, flat, stride, 0, 0, out, at, 1, 1)


@njit(cache=True, nogil=True)
def _sum_many(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of 16 columns or more, up to `TOGETHER` of them at a time."""
    for column in range(0, width, TOGETHER):
        first = min(column, width - 16)
        last = min(column + TOGETHER, width) - 16
        if last - first > 32:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 4)
        elif last - first > 16:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 3)
        elif last > first:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 2)
        else:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 1)
