"""Integer sums clipped before noise, for the node relation (claim N-NODE, on the grid).

    clipped[v] = sums[v]                                      where its norm is at most c
               = truncate(sums[v] c / ||sums[v]||)            elsewhere, in whole steps

Clipped rows are integers too, so the noise stays exact. Rounding may move two rows further apart
than clipping left them: by at most one step per coordinate, sqrt(width) steps in total.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import ROWS_PER_BLOCK, STEPS

ROUND_DOWN = 1 - 2.0**-40
"""Factor against rows made longer by floating point; it moves a row by less than 2^-21 steps."""

SLACK = 1 + 2.0**-20
MAX_DEGREE_BOUND = 1 << 20
"""Largest `max_degree` for which the sums of squares here fit 64 bits."""


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
