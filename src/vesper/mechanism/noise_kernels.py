"""The loop behind `noise.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def add_draws(
    bits: NDArray[np.uint64],
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    guide: NDArray[np.int32],
    offset: int,
    out: NDArray[np.int32],
) -> None:
    """Add one draw to each entry: walk from the guide to the first threshold above the bits.

    The first 64 bits decide; only where they equal a threshold's are the next 64 looked at.
    """
    for k in range(len(out)):
        first = bits[k, 0]
        at = guide[first >> np.uint64(48)]
        while at < len(high) and (
            first > high[at] or (first == high[at] and bits[k, 1] >= low[at])
        ):
            at += 1
        out[k] += at - offset
