"""The loop behind `dropout.py`, compiled by Numba on first use and cached on disk."""

import numpy as np
from numpy.typing import NDArray

from vesper.parallel import pool
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

ENTRIES_PER_PIECE = 1 << 17
"""Entries that a thread takes at a time."""

Floats = NDArray[np.float32]


def apply_mask(
    x: Floats,
    levels: NDArray[np.int16],
    *,
    min_level: int,
    scale: float,
    out: Floats,
    num_threads: int,
) -> None:
    """Write x * scale into `out` where the level is at least `min_level`, and 0 elsewhere."""
    pool.run(
        _apply_mask,
        x,
        levels,
        np.int16(min_level),
        np.float32(scale),
        out,
        num_pieces=-(-len(x) // ENTRIES_PER_PIECE),
        num_threads=num_threads,
    )


@cached_njit
def _apply_mask(
    work: Work,
    thread: int,
    x: Floats,
    levels: NDArray[np.int16],
    min_level: np.int16,
    scale: np.float32,
    out: Floats,
) -> None:
    zero = np.float32(0)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ENTRIES_PER_PIECE, min((piece + 1) * ENTRIES_PER_PIECE, len(x))):
            out[k] = x[k] * (scale if levels[k] >= min_level else zero)
        finish(work)
        piece = take(work)
