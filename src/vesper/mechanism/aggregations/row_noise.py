"""The last step before aggregated rows may leave: clipping if required, noise, units.

    released[k] = (clip(values[k]) + K_k) / steps,      K_k = round(scale N(0, I))
    clip(row)   = row                                   where its norm is at most c
                = truncate(row c / ||row||)             elsewhere, in whole steps

The noise of a row depends only on the bits of the release and on the position of the row, so rows
may be finished in any parts, anywhere, in any order.

Clipping is for the node relation (claim N-NODE, on the grid). Clipped rows are integers too, so the
noise stays exact. Rounding may move two rows further apart than clipping left them: by at most one
step per coordinate, sqrt(width) steps in total.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import ROWS_PER_BLOCK, STEPS, from_grid
from vesper.mechanism.noise.noise_source import NoiseSpan

ROUND_DOWN = 1 - 2.0**-40
"""Factor against rows made longer by floating point; it moves a row by less than 2^-21 steps."""

SLACK = 1 + 2.0**-20
MAX_DEGREE_BOUND = 1 << 20
"""Largest `max_degree` for which the sums of squares here fit 64 bits."""


@dataclass(frozen=True, kw_only=True)
class RowNoise:
    """Noise and clipping of the rows of one release.

    Args:
        bits: fresh bits for all entries of the release.
        scale: standard deviation of the noise, in grid steps.
        steps: grid steps per unit.
        row_norm: norm, in units, that rows are clipped to; None: no clipping.
    """

    bits: NoiseSpan
    scale: float
    steps: int
    row_norm: float | None = None

    def finish_rows(self, values: NDArray[np.int32], *, first_row: int = 0) -> NDArray[np.float32]:
        """Finish rows first_row, first_row + 1, .. of the release, in the same memory."""
        if self.row_norm is not None:
            clip_on_grid(values, row_norm=self.row_norm)
        self.bits.add_gaussian_to(values, scale=self.scale, first=first_row * values.shape[1])
        return from_grid(values, steps=self.steps)


def rounding_of(width: int) -> float:
    """Bound on how much further apart rounding moves two clipped rows, in units.

    >>> round(rounding_of(9), 4)
    0.0469
    """
    return math.sqrt(width) / STEPS * SLACK


def clip_on_grid(sums: NDArray[np.int32], *, row_norm: float) -> None:
    """Shorten rows longer than `row_norm`, in place; (num_receivers, width) in steps."""
    limit = math.floor((Fraction(row_norm) * STEPS) ** 2)  # on the sum of squares
    for start in range(0, len(sums), ROWS_PER_BLOCK):
        block = sums[start : start + ROWS_PER_BLOCK]
        squares = _squares(block)
        long = np.flatnonzero(squares > limit)
        scale = row_norm * STEPS * ROUND_DOWN / np.sqrt(squares[long])  # (long rows,)
        block[long] = np.trunc(block[long] * scale[:, None]).astype(np.int32)
        if (_squares(block[long]) > limit).any():
            raise AssertionError("a clipped row is longer than row_norm")


def refuse_high_degrees(graph: Graph, *, max_degree: int) -> None:
    """Refuse a graph that breaks the public degree bound, before anything is charged.

    Raises:
        InputError: some node has more than `max_degree` neighbours.
    """
    if max_degree > MAX_DEGREE_BOUND:
        raise InputError(f"max_degree: expected at most {MAX_DEGREE_BOUND}, got {max_degree}")
    high = np.flatnonzero(np.diff(graph.indptr) > max_degree)
    if len(high):
        raise InputError(
            f"max_degree: expected at most {max_degree} neighbours per node, got more at "
            f"{len(high)} nodes ({first_three(high)}); set a larger max_degree: deleting edges to "
            f"meet it would break the guarantee for nodes"
        )


def _squares(rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """Sum of squares of each row, exactly: the degree bound keeps it within 64 bits."""
    total: NDArray[np.int64] = np.einsum("vk,vk->v", rows, rows, dtype=np.int64, casting="safe")
    return total
