"""The loop behind `dropout.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numpy.typing import NDArray

from vesper.parallel import pool
from vesper.parallel.compile_cache import compiled
from vesper.parallel.pool import Work, finish, take

PIECE = 1 << 17
"""Entries a thread takes at a time."""

Floats = NDArray[np.float32]


def keep(
    x: Floats, levels: NDArray[np.int16], *, least: int, scale: float, out: Floats, num_threads: int
) -> None:
    """Write x scale into `out` where the level is at least `least`, and 0 elsewhere."""
    pool.run(
        _keep,
        x,
        levels,
        np.int16(least),
        np.float32(scale),
        out,
        num_pieces=-(-len(x) // PIECE),
        num_threads=num_threads,
    )


@compiled
def _keep(
    work: Work,
    seat: int,
    x: Floats,
    levels: NDArray[np.int16],
    least: np.int16,
    scale: np.float32,
    out: Floats,
) -> None:
    zero = np.float32(0)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * PIECE, min((piece + 1) * PIECE, len(x))):
            out[k] = x[k] * (scale if levels[k] >= least else zero)
        finish(work)
        piece = take(work)
