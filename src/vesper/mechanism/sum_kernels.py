"""The loop behind `neighbor_sum.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors


@njit(cache=True, parallel=True)
def sum_rows(
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    messages: NDArray[np.int8],
    receivers: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Add message[u] into out[k] for each neighbour u of receivers[k]."""
    width = messages.shape[1]
    for k in prange(len(receivers)):
        v = receivers[k]
        for at in range(indptr[v], indptr[v + 1]):
            u = neighbors[at]
            for c in range(width):
                out[k, c] += messages[u, c]
