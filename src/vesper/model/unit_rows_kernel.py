"""The loops behind `unit_rows.py`, compiled by Numba on first use and cached on disk.

A row is read and written while it is in the nearest cache. Sums over a row have a fixed order, so
they depend neither on the number of threads nor on the machine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.parallel import pool
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

ROWS_PER_PIECE = 1 << 10
"""Rows that a thread takes at a time."""

Floats = NDArray[Any]
"""Array of single or double precision."""


def scale_to_unit(
    rows: Floats, *, rectify: bool, directions: Floats, lengths: Floats, num_threads: int
) -> None:
    """Write row / ||row|| and ||row||, of ReLU(row) if `rectify`; a zero row gets length 1."""
    _in_pieces(_scale, rows, rectify, directions, lengths, num_threads=num_threads)


def unit_gradient(
    gradients: Floats,
    *,
    rectify: bool,
    directions: Floats,
    lengths: Floats,
    out: Floats,
    num_threads: int,
) -> None:
    """Write the gradients of the rows, given the gradients of their directions."""
    _in_pieces(
        _unit_gradient, gradients, rectify, directions, lengths, out, num_threads=num_threads
    )


def _in_pieces(kernel: Any, rows: Floats, *arguments: Any, num_threads: int) -> None:
    num_pieces = -(-len(rows) // ROWS_PER_PIECE)
    pool.run(kernel, rows, *arguments, num_pieces=num_pieces, num_threads=num_threads)


@cached_njit
def _scale(
    work: Work, thread: int, rows: Floats, rectify: bool, directions: Floats, lengths: Floats
) -> None:
    width = rows.shape[1]
    zero, one = rows.dtype.type(0), rows.dtype.type(1)
    piece = take(work)
    while piece >= 0:
        for v in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(rows))):
            row, direction = rows[v], directions[v]
            squares = zero
            for k in range(width):
                entry = max(row[k], zero) if rectify else row[k]  # NaN stays
                direction[k] = entry
                squares += entry * entry
            length = np.sqrt(squares) if squares != zero else one
            lengths[v] = length
            scale = one / length
            for k in range(width):
                direction[k] *= scale
        finish(work)
        piece = take(work)


@cached_njit
def _unit_gradient(
    work: Work,
    thread: int,
    gradients: Floats,
    rectify: bool,
    directions: Floats,
    lengths: Floats,
    out: Floats,
) -> None:
    width = gradients.shape[1]
    zero, one = gradients.dtype.type(0), gradients.dtype.type(1)
    piece = take(work)
    while piece >= 0:
        for v in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(gradients))):
            direction, gradient, row_gradient = directions[v], gradients[v], out[v]
            along = zero
            for k in range(width):
                along += direction[k] * gradient[k]
            scale = one / lengths[v]
            for k in range(width):
                across = (gradient[k] - direction[k] * along) * scale
                row_gradient[k] = zero if rectify and direction[k] <= zero else across
        finish(work)
        piece = take(work)
