"""The loop behind `span.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numpy.typing import NDArray

from vesper.parallel.compile_cache import cached_njit


@cached_njit
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

    64 bits that equal those of a threshold are undecided: the position is written to `ties` and
    nothing is added. Returns the number of ties, about one in 2^50 draws.
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
