"""The loop behind `neighbor_sum.py`: sixteen message entries an addition.

    packed[u]  = message[u] + BIAS, a byte each                  (bytes are 0 .. 128)
    lanes     += packed[u]                                       (16 bits each)
    sum[v]     = lanes - BIAS * degree(v)

A lane holds 511 bytes of 128 before it could overflow; before that it is emptied into 32 bits.
Whole numbers all the way: the result is exact, whatever the order. The innermost loop has no sign
and no branch, which is what a compiler needs to use wide registers. Compiled by Numba on first use.
"""

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import NDArray

from vesper.graph import team
from vesper.graph.graph import Neighbors
from vesper.graph.intrinsics import prefetch
from vesper.graph.team import Work, finish, take

BIAS = 64
STRIDE = 16
"""Rows are filled up to a multiple of this: so many lanes are added at once."""

TOGETHER = 4
"""Messages added before the lanes are touched."""

LANE_CAPACITY = 508
"""Messages a lane takes before it is emptied: at most 511, and a multiple of those together."""

ROWS = 1024
"""Receivers a piece: large enough to be worth taking, small enough to share evenly."""

AHEAD = 16
"""Messages are asked for so many neighbours before they are read."""

Packed = NDArray[np.uint8]


def pack(messages: NDArray[np.int8]) -> tuple[Packed, int]:
    """Give the messages as bytes, flat, and the number of bytes a node."""
    num_nodes, width = messages.shape
    stride = -(-width // STRIDE) * STRIDE
    packed = np.zeros((num_nodes, stride), dtype=np.uint8)
    np.add(messages, BIAS, out=packed[:, :width], casting="unsafe")
    packed.setflags(write=False)  # as workers of an engine get it: compiled once for both
    return packed.reshape(-1), stride


def sums_of_rows(
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    packed: Packed,
    stride: int,
    receivers: NDArray[np.int64],
    *,
    width: int,
) -> NDArray[np.int32]:
    """Sum messages over the neighbours of each receiver, on several threads."""
    out = np.empty((len(receivers), width), dtype=np.int32)
    team.run(
        sum_rows,
        indptr,
        neighbors,
        packed,
        stride,
        receivers,
        out,
        num_pieces=-(-len(receivers) // ROWS),
        num_threads=get_num_threads(),
    )
    return out


@njit(cache=True, nogil=True)
def sum_rows(
    work: Work,
    seat: int,
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    packed: Packed,
    stride: int,
    receivers: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the sum of message[u] over the neighbours u of receivers[k] into out[k]."""
    width = out.shape[1]
    lanes = np.zeros(stride, dtype=np.uint16)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS, min((piece + 1) * ROWS, len(receivers))):
            start, stop = indptr[receivers[k]], indptr[receivers[k] + 1]
            for c in range(width):
                out[k, c] = -BIAS * (stop - start)
            while start < stop:
                pause = min(start + LANE_CAPACITY, stop)
                lanes[:] = 0
                _add_messages(neighbors, start, pause, packed, stride, lanes)
                for c in range(width):
                    out[k, c] += lanes[c]
                start = pause
        finish(work)
        piece = take(work)


@njit(cache=True, nogil=True)
def _add_messages(
    neighbors: Neighbors,
    start: int,
    stop: int,
    packed: Packed,
    stride: int,
    lanes: NDArray[np.uint16],
) -> None:
    """Add the messages of neighbors[start:stop], at most `LANE_CAPACITY`, to the lanes."""
    last = len(neighbors) - 1
    at = start
    while at + TOGETHER <= stop:
        for k in range(at + AHEAD, at + AHEAD + TOGETHER):
            ahead = np.int64(neighbors[min(k, last)]) * stride
            prefetch(packed, ahead)
            prefetch(packed, ahead + stride - 1)
        a = _row(packed, neighbors[at], stride)
        b = _row(packed, neighbors[at + 1], stride)
        c = _row(packed, neighbors[at + 2], stride)
        d = _row(packed, neighbors[at + 3], stride)
        for lane in range(stride):
            four = np.uint16(a[lane]) + np.uint16(b[lane]) + np.uint16(c[lane]) + np.uint16(d[lane])
            lanes[lane] += np.uint16(four)
        at += TOGETHER
    while at < stop:
        message = _row(packed, neighbors[at], stride)
        for lane in range(stride):
            lanes[lane] += np.uint16(message[lane])
        at += 1


@njit(cache=True, nogil=True)
def _row(packed: Packed, node: int, stride: int) -> Packed:
    first = np.int64(node) * stride
    return packed[first : first + stride]
