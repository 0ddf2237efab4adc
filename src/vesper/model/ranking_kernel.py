"""The loop behind the ranks of `feature_scaling.py`, compiled by Numba and cached on disk.

out[v, k] = table[number of knots of k below x[v, k] + number of knots up to x[v, k]]
"""

import numpy as np
from numpy.typing import NDArray

from vesper.parallel import pool
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

ROWS_PER_PIECE = 1 << 10
"""Rows that a thread takes at a time."""

Floats = NDArray[np.float32]


def look_up_ranks(
    x: Floats, knots: Floats, table: Floats, *, out: Floats, num_threads: int
) -> None:
    """Write the table entry of each value.

    Args:
        x: (rows, width), finite.
        knots: (width, number of knots), ascending in each row.
        table: (2 x number of knots + 1,), indexed by twice the rank; ties count half.
        out: (rows, width).
        num_threads: most threads to use.
    """
    lowest = (knots == knots[:, :1]).sum(axis=1)  # (width,) knots equal to the smallest
    num_pieces = -(-len(x) // ROWS_PER_PIECE)
    pool.run(_look_up, x, knots, lowest, table, out, num_pieces=num_pieces, num_threads=num_threads)


@cached_njit
def _look_up(
    work: Work,
    thread: int,
    x: Floats,
    knots: Floats,
    lowest: NDArray[np.int64],
    table: Floats,
    out: Floats,
) -> None:
    piece = take(work)
    while piece >= 0:
        for row in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(x))):
            for k in range(x.shape[1]):
                value = x[row, k]
                if value <= knots[k, 0]:  # most values of most words: no search needed
                    rank = lowest[k] if value == knots[k, 0] else 0
                else:
                    below = _count(knots[k], value, up_to=False)
                    rank = 2 * below
                    if below < knots.shape[1] and knots[k, below] == value:
                        rank = below + _count(knots[k], value, up_to=True)
                out[row, k] = table[rank]
        finish(work)
        piece = take(work)


@cached_njit
def _count(knots: Floats, value: np.float32, up_to: bool) -> int:
    """Count the knots below a value, or up to it."""
    low, high = 0, len(knots)
    while low < high:
        middle = (low + high) // 2
        if knots[middle] < value or (up_to and knots[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low
