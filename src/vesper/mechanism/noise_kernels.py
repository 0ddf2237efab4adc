"""The loops behind `noise.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vesper.graph.team import Work, finish, take

PIECE = 1 << 15
"""Draws a thread makes at a time."""


@njit(cache=True, nogil=True)
def add_draws(
    bits: NDArray[np.uint64],
    high: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: np.uint64,
    offset: int,
    out: NDArray[np.int32],
    ties: NDArray[np.int64],
) -> int:
    """Add one draw to each entry: walk from the guide to the first threshold above the bits.

    Where the 64 bits equal those of a threshold they do not decide: the place is written to `ties`
    and nothing is added. Returns the number of ties, about one in 2^50 draws.
    """
    num_ties = 0
    last = len(high) - 1
    for k in range(len(out)):
        uniform = bits[k]
        at = guide[uniform >> shift]
        while at <= last and uniform > high[at]:
            at += 1
        if at <= last and uniform == high[at]:
            ties[num_ties] = k
            num_ties += 1
        else:
            out[k] += at - offset
    return num_ties


@njit(cache=True, nogil=True)
def add_pieces(
    work: Work,
    seat: int,
    bits: NDArray[np.uint64],
    high: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: np.uint64,
    offset: int,
    out: NDArray[np.int32],
    ties: NDArray[np.int64],
    num_ties: NDArray[np.int64],
) -> None:
    """Add one draw to each entry, on several threads.

    Which bits go to which entry does not depend on the threads. Of piece k, ties[k * PIECE :] has
    the places that are not decided, counted from its start, and num_ties[k] their number.
    """
    piece = take(work)
    while piece >= 0:
        part = slice(piece * PIECE, min((piece + 1) * PIECE, len(out)))
        num_ties[piece] = add_draws(bits[part], high, guide, shift, offset, out[part], ties[part])
        finish(work)
        piece = take(work)
