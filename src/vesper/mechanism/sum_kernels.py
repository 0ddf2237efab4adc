"""The loop behind `neighbor_sum.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors
from vesper.graph.intrinsics import prefetch
from vesper.graph.team import Work, finish, take

ROWS = 1024
"""Receivers a piece: large enough to be worth taking, small enough to share evenly."""

AHEAD = 16
"""Messages are asked for so many neighbours before they are read."""


@njit(cache=True, nogil=True)
def sum_rows(
    work: Work,
    seat: int,
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    messages: NDArray[np.int8],
    width: int,
    receivers: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the sum of message[u] over the neighbours u of receivers[k] into out[k].

    `messages` is flat, (num_nodes * width,), so that an address can be prefetched.
    """
    total = np.empty(width, dtype=np.int32)
    last = len(neighbors) - 1
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS, min((piece + 1) * ROWS, len(receivers))):
            v = receivers[k]
            for c in range(width):
                total[c] = 0
            for at in range(indptr[v], indptr[v + 1]):
                ahead = np.int64(neighbors[min(at + AHEAD, last)]) * width
                prefetch(messages, ahead)
                prefetch(messages, ahead + width - 1)
                start = np.int64(neighbors[at]) * width
                for c in range(width):
                    total[c] += messages[start + c]
            for c in range(width):
                out[k, c] = total[c]
        finish(work)
        piece = take(work)
