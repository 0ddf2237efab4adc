"""Sum over neighbours, and its bound (claim R-SUM).

aggregated[v] = sum over u in N(v) of message[u]        for v in receivers

Messages are int8 and sums int32, so results are exact. A row is summed in parts of up to sixteen
columns, the lanes of `sum_kernels`; the last part may overlap the one before.

    width       1      2, 3      4 .. 7      8 .. 15      16 and more
    lanes       1      2         4           8            16, at most four parts at a time
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors
from vesper.mechanism.aggregations.aggregation import (
    ROWS_PER_PIECE,
    Ints,
    RowAggregation,
    RowKernel,
    run_rows,
)
from vesper.mechanism.aggregations.grid import STEPS, Messages
from vesper.mechanism.aggregations.sum_kernels import add_messages
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take
from vesper.privacy.events import SUM

COLUMNS_AT_ONCE = 64
"""Columns summed at a time: four parts of sixteen lanes."""


class NeighborSum(RowAggregation):
    """Sum of the neighbours' messages, without the own message.

    Claim: R-SUM.
    Relation: differ by one edge.
    Assumes (caller verifies): messages and receivers do not depend on edges; rows of norm <= 1.
    Moves: two rows, those of the two endpoints, where they are receivers.
    Tight: yes, two nodes, messages of norm 1.
    Proof: docs/claims/R-SUM.md.
    """

    name, steps, moves_others = SUM, STEPS, False
    endpoint_shift = 1.0
    """l2 move of one endpoint's row."""

    def edge_sensitivity(self) -> float:
        """Return the l2 move of the whole output when one edge changes: sqrt 2."""
        return math.sqrt(2) * self.endpoint_shift

    def refuse(self, messages: Messages) -> None:
        """Refuse nothing: any messages on the grid can be summed."""

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return the kernel that sums int8 messages exactly, in int32."""
        return RowKernel(sums_of_rows)


def sums_of_rows(
    starts: Ints, stops: Ints, neighbors: Neighbors, width: int, messages: Messages
) -> NDArray[np.int32]:
    """Sum messages over the neighbours of each receiver."""
    return run_rows(_sum_rows, starts, stops, neighbors, width, messages)


@cached_njit
def _sum_rows(
    work: Work,
    thread: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    neighbors: Neighbors,
    out: NDArray[np.int32],
    messages: Messages,
) -> None:
    """Write the sum of message[u] over u in neighbors[starts[k] : stops[k]] into row k of out."""
    width, stride = out.shape[1], messages.shape[1]
    flat, sums = messages.reshape(-1), out.reshape(-1)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(starts))):
            if width < 16:
                _sum_few(neighbors, starts[k], stops[k], flat, stride, width, sums, k * width)
            else:
                _sum_many(neighbors, starts[k], stops[k], flat, stride, width, sums, k * width)
        finish(work)
        piece = take(work)


@cached_njit
def _sum_few(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of fewer than 16 columns."""
    if width >= 8:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 8, out, at, 8, 2)
    elif width >= 4:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 4, out, at, 4, 2)
    elif width >= 2:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 2, out, at, 2, 2)
    else:
        add_messages(neighbors, start, stop, flat, stride, 0, 0, out, at, 1, 1)


@cached_njit
def _sum_many(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of 16 columns or more, up to `COLUMNS_AT_ONCE` of them at a time."""
    for column in range(0, width, COLUMNS_AT_ONCE):
        first = min(column, width - 16)
        last = min(column + COLUMNS_AT_ONCE, width) - 16
        if last - first > 32:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 4)
        elif last - first > 16:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 3)
        elif last > first:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 2)
        else:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 1)
