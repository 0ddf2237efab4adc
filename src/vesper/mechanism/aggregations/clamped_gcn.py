"""GCN with clamped degrees in exact integers (claim S-GCN-CLAMP, on the grid).

    weight(d)     = floor(2^15 sqrt((m + 1) / (c(d) + 1))),    c(d) = d clamped to m .. M
    exact[v]      = weight(d_v) sum over u in N(v) of weight(d_u) message[u]
    aggregated[v] = round(exact[v] / divisor)                  FINE_STEPS per unit

The own message is left out: it is edge-free and passed on without noise. One edge also moves rows
of other nodes, and each of them may round the other way, so a neighbourhood of any size could move
by whole steps. That is why degrees above M count as M, and why the public `divisor` is chosen such
that all rows together, rounding included, move by at most sqrt 2 units.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import RowAggregation, RowKernel
from vesper.mechanism.aggregations.grid import STEPS, Messages
from vesper.privacy.accounting.safe_numbers import expect

FINE_STEPS = 256
WHOLE = 1 << 15
"""The weight of a node with at most `min_degree` neighbours."""

MAX_DEGREE = 1024
ROWS_BY_WIDTH = 1 << 14
"""Most entries (rows times width) to round around one endpoint: an eighth of 2 FINE_STEPS^2."""

ROUND_DOWN, ROUND_UP = 1 - 2.0**-30, 1 + 2.0**-40
"""Factors that exceed the rounding error of a formula of twenty operations."""


class GridGcn(RowAggregation):
    """GCN in which degrees count as at least `min_degree` and at most `max_counted`.

    Claim: S-GCN-CLAMP (on the grid). One edge moves all rows together by at most
        sqrt 2 FINE_STEPS.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): messages are functions of edge-free data and of earlier releases;
        every node is charged for the release.
    Moves: the endpoints, and all other neighbours of an endpoint with more than `min_degree` and
        at most `max_counted` neighbours.
    Tight: at least 0.93 of it is attained, by two joined stars with `min_degree` leaves each.
    Proof: docs/claims/S-GCN-CLAMP.md.

    Args:
        min_degree: m, public.

    Raises:
        InputError: `min_degree` is out of range.
    """

    name, steps, moves_others = "clamped gcn", FINE_STEPS, True
    endpoint_shift = 1.0

    def __init__(self, *, min_degree: int) -> None:
        expect(
            1 <= min_degree < MAX_DEGREE // 2,
            name="min_degree",
            wanted=f"1 <= min_degree < {MAX_DEGREE // 2}",
            got=min_degree,
            remedy="choose roughly the typical number of neighbours",
        )
        self.min_degree = min_degree

    def refuse(self, messages: Messages) -> None:
        """Refuse messages so wide that rounding alone would move too much."""
        self.refuse_width(messages.shape[1])

    def refuse_width(self, width: int) -> None:
        """Refuse a width at which rounding alone would move too much."""
        divisor_for(min_degree=self.min_degree, width=width)

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return the kernel that weights and sums exactly, in 64 bits, and rounds once."""
        from vesper.mechanism.aggregations.weighted_kernels import weighed_rows

        width = messages.shape[1]
        table = weights_up_to(max_counted(width), min_degree=self.min_degree)
        weights = table[np.minimum(np.diff(graph.indptr), len(table) - 1)]  # (num_nodes,)
        divisor = divisor_for(min_degree=self.min_degree, width=width)
        return RowKernel(weighed_rows, sender_tables=(weights,), own=(weights,), scalars=(divisor,))


def max_counted(width: int) -> int:
    """Return M, the largest degree that counts; larger ones count as M.

    >>> max_counted(7), max_counted(48)
    (1024, 341)
    """
    return min(MAX_DEGREE, ROWS_BY_WIDTH // width)


@lru_cache(maxsize=64)
def weights_up_to(degree: int, *, min_degree: int) -> NDArray[np.int64]:
    """Weight of each degree from 0 to `degree`: `WHOLE` up to `min_degree`, then falling.

    >>> weights_up_to(4, min_degree=2).tolist()
    [32768, 32768, 32768, 28377, 25381]
    """
    counted = (max(each, min_degree) + 1 for each in range(degree + 1))
    weights = [math.isqrt(WHOLE**2 * (min_degree + 1) // each) for each in counted]
    table = np.array(weights, dtype=np.int64)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def divisor_for(*, min_degree: int, width: int) -> int:
    """Smallest divisor, up to rounding, with which an edge moves all rows by at most sqrt 2 units.

    Raises:
        InputError: no divisor is large enough, because the messages are too wide.
    """
    whole = STEPS * WHOLE**2  # what a message of norm 1 adds between two nodes of low degree
    first, second, third = _quadratic(min_degree=min_degree, width=width)
    slack = 2 * FINE_STEPS**2 - third  # (degrees, degrees)
    expect(
        max_counted(width) > min_degree and bool((slack > 0).all()),
        name="width",
        wanted=f"messages that aggregator 'gcn-clamped' can round at min_degree={min_degree}",
        got=width,
        remedy="use fewer classes, a smaller min_degree, or another aggregator",
    )
    scale = float(((np.sqrt(second**2 + first * slack) - second) / first).min()) * ROUND_DOWN
    divisor = math.ceil(whole / scale)
    if move_squared(divisor, min_degree=min_degree, width=width) > 2 * FINE_STEPS**2:
        raise InputError(
            f"min_degree={min_degree}, width={width}: no divisor found; use another aggregator."
        )
    return divisor


def move_squared(divisor: int, *, min_degree: int, width: int) -> float:
    """Upper bound on the squared move of all rows together, in fine steps squared, rounded up."""
    scale = STEPS * WHOLE**2 / divisor
    first, second, third = _quadratic(min_degree=min_degree, width=width)
    return float((first * scale**2 + 2 * second * scale + third).max()) * ROUND_UP


def _quadratic(*, min_degree: int, width: int) -> tuple[NDArray[np.float64], ...]:
    """Coefficients of the bound, a quadratic in the scale, for the degrees of both endpoints.

        (scale (w_p w_q + (p - 1) drop_p) + r)^2 + 2 (p - 1) (scale drop_p + r)^2 [drop_p > 0]
        and the same with p and q exchanged;     r = sqrt(width),  drop_p = w_(p - 1) - w_p

    Degrees run from `min_degree`, which covers all below, to M + 1, which covers all above.
    """
    degrees = np.arange(min_degree, max_counted(width) + 2)
    table = weights_up_to(max_counted(width), min_degree=min_degree) / WHOLE  # exact: 15 bits
    weights = table[np.minimum(degrees, len(table) - 1)]
    drops = table[np.minimum(degrees - 1, len(table) - 1)] - weights
    others = degrees - 1.0
    edge_move = weights[:, None] * weights + (others * drops)[:, None]  # (degrees, degrees)
    around = 2 * others * (drops > 0)
    first = edge_move**2 + (around * drops**2)[:, None]
    second = edge_move + (around * drops)[:, None]
    third = 1 + np.broadcast_to(around[:, None], edge_move.shape)
    root = math.sqrt(width)
    return first + first.T, root * (second + second.T), width * (third + third.T)
