"""The loop behind `neighbor_sum.py`: eight message entries an addition.

    packed[u]   = message[u] + BIAS, a byte each, eight to a word         (bytes are 0 .. 128)
    even, odd  += packed[u] & 00ff00ff.., packed[u] >> 8 & 00ff00ff..     (lanes of 16 bits)
    sum[v]      = lanes - BIAS * degree(v)

A lane holds 511 bytes of 128 before it could overflow; then it is emptied into 32 bits. Whole
numbers all the way: the result is exact, whatever the order. Compiled by Numba on first use.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors
from vesper.graph.intrinsics import prefetch
from vesper.graph.team import Work, finish, take

BIAS = 64
LANE_CAPACITY = 511

ROWS = 1024
"""Receivers a piece: large enough to be worth taking, small enough to share evenly."""

AHEAD = 16
"""Messages are asked for so many neighbours before they are read."""

_EVEN = np.uint64(0x00FF00FF00FF00FF)
_BYTE = np.uint64(8)

Packed = NDArray[np.uint64]


def pack(messages: NDArray[np.int8]) -> tuple[Packed, int]:
    """Give the messages as words, flat, and the number of words a node."""
    num_nodes, width = messages.shape
    words = -(-width // 8)
    packed = np.full((num_nodes, 8 * words), BIAS, dtype=np.uint8)
    np.add(messages, BIAS, out=packed[:, :width], casting="unsafe")
    return packed.view(np.uint64).reshape(-1), words


@njit(cache=True, nogil=True)
def sum_rows(
    work: Work,
    seat: int,
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    packed: Packed,
    words: int,
    receivers: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the sum of message[u] over the neighbours u of receivers[k] into out[k]."""
    width = out.shape[1]
    even, odd = np.zeros(words, dtype=np.uint64), np.zeros(words, dtype=np.uint64)
    even_lanes, odd_lanes = even.view(np.uint16), odd.view(np.uint16)
    last = len(neighbors) - 1
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS, min((piece + 1) * ROWS, len(receivers))):
            start, stop = indptr[receivers[k]], indptr[receivers[k] + 1]
            for c in range(width):
                out[k, c] = -BIAS * (stop - start)
            while start < stop:
                pause = min(start + LANE_CAPACITY, stop)
                even[:] = 0
                odd[:] = 0
                for at in range(start, pause):
                    ahead = np.int64(neighbors[min(at + AHEAD, last)]) * words
                    prefetch(packed, ahead)
                    prefetch(packed, ahead + words - 1)
                    base = np.int64(neighbors[at]) * words
                    for w in range(words):
                        word = packed[base + w]
                        even[w] += word & _EVEN
                        odd[w] += (word >> _BYTE) & _EVEN
                for c in range(0, width, 2):
                    out[k, c] += even_lanes[c // 2]
                for c in range(1, width, 2):
                    out[k, c] += odd_lanes[c // 2]
                start = pause
        finish(work)
        piece = take(work)
