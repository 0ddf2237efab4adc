"""The certified accountant: one sum of charges per node.

    charge = endpoint_shift^2 / noise_std^2
    c_v    = sum of the charges of the releases that had v as a receiver
    mu     = sqrt(rows * c_max)          if no c_v ever exceeds c_max            (claim L-FILTER)

`rows` counts what the neighbouring relation can move, in rows that move by one unit: 2 for one edge
(its two endpoints), D + row_norm^2 for one node (`node_rows`). `endpoint_shift` is how far one
release moves the row of one endpoint: 1 for a sum of unit-norm messages. An aggregation that moves
other rows too (GCN) has an edge sensitivity S over all rows together: charge *every* node for
endpoint_shift = S / sqrt(2), and the two endpoints together pay S^2.

Rounding is conservative: caps round down; charges, noise and epsilon round up.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from vesper.privacy.accounting.budget import Budget, NonPrivate, require_finite
from vesper.privacy.accounting.gaussian import epsilon_of, mu_of
from vesper.privacy.accounting.safe_numbers import (
    expect,
    expect_count,
    expect_not_negative,
    expect_positive,
)

EDGE_ROWS = 2.0

COST_GRAIN = 2.0**-60
"""Share of a cap that planned noise leaves unused per release, because an account rounds each
charge up to whole units, of which its cap has at least 2^61."""

ROUND_UP, ROUND_DOWN = 1 + 2.0**-50, 1 - 2.0**-50  # more than four roundings of 2^-53


def node_rows(*, max_degree: int, row_norm: float) -> float:
    """D + row_norm^2, the rows that one node can move: sensitivity sqrt(D + row_norm^2) per hop.

    Claim: N-NODE. When all edges of one node are removed, each of its neighbours loses one message
        of norm at most 1, and its own aggregated row, clipped to `row_norm`, becomes 0. Clipping
        moves no two rows further apart.
    Relation: one graph is the other with all edges of one node removed.
    Assumes: no degree exceeds `max_degree` in either graph, which is public knowledge.
    Moves: max_degree + 1 rows.
    Tight: yes, for a node of degree max_degree with equal messages around it.
    Proof: docs/claims/N-NODE.md.

    >>> node_rows(max_degree=20, row_norm=4.0)
    36.0
    """
    expect_count("max_degree", max_degree, at_least=1)
    expect_positive("row_norm", row_norm)
    return max_degree + row_norm * row_norm


def cap_for(*, budget: Budget, rows: float = EDGE_ROWS) -> float:
    """c_max = mu^2 / rows: the most that one node may be charged, rounded down.

    Claim: L-FILTER. If every release that would take some c_v above c_max is refused, everything
        released, however adaptively, is (epsilon, delta)-DP as in `budget`.
    Relation: graphs that differ by one edge (`rows` = 2), or by one node (`node_rows`).
    Assumes: receivers, messages and noise of a release are chosen without reading an edge other
        than through earlier releases; a release moves the row of a receiver by at most its
        endpoint_shift; the charge is booked before the noise is drawn.
    Moves: two rows per release for one edge.
    Tight: exact when both endpoints use up their caps; if only one endpoint is among the
        receivers, the exact value is mu / sqrt(2).
    Proof: docs/claims/L-FILTER.md.
    """
    expect_positive("rows", rows)
    mu = mu_of(epsilon=require_finite(budget).epsilon, delta=budget.delta)
    return mu * mu / rows * ROUND_DOWN


def charge_of(*, noise_std: float, endpoint_shift: float = 1.0) -> float:
    """endpoint_shift^2 / noise_std^2, rounded up; inf without noise.

    >>> charge_of(noise_std=0.0)
    inf
    """
    expect_not_negative("noise_std", noise_std)
    expect_positive("endpoint_shift", endpoint_shift)
    if noise_std == 0:
        return math.inf
    ratio = endpoint_shift / noise_std
    return math.nextafter(ratio * ratio * ROUND_UP, math.inf)


def mu_for(*, spent: float, rows: float = EDGE_ROWS) -> float:
    """sqrt(rows * spent), rounded up: the mu for a largest c_v of `spent`."""
    expect_not_negative("spent", spent)
    expect_positive("rows", rows)
    return math.sqrt(rows * spent) * ROUND_UP


def spent_epsilon(*, spent: float, delta: float, rows: float = EDGE_ROWS) -> float:
    """Epsilon at `delta` when the largest c_v is `spent`, rounded up."""
    return epsilon_of(mu=mu_for(spent=spent, rows=rows), delta=delta)


def noise_std_for(
    *,
    budget: Budget | NonPrivate,
    releases: int,
    endpoint_shift: float = 1.0,
    rows: float = EDGE_ROWS,
) -> float:
    """Smallest noise with which a node may receive `releases` releases, rounded up.

    It is above 0 for every `Budget`; only `NonPrivate` gives 0.

    Raises:
        InputError: epsilon is infinite, or the budget is too small for so many releases.
    """
    expect_count("releases", releases, at_least=1)
    if isinstance(budget, NonPrivate):
        return 0.0
    cap = cap_for(budget=budget, rows=rows)
    return noise_std_within(room=cap, cap=cap, releases=releases, endpoint_shift=endpoint_shift)


def split_noise_std(
    *,
    budget: Budget,
    weights: Sequence[float],
    releases: int = 1,
    endpoint_shift: float = 1.0,
    rows: float = EDGE_ROWS,
) -> list[float]:
    """Noise of each hop when hop h may use the share weights[h] / sum(weights) of every node's cap.

    Weights (1, 1) give the noise of `noise_std_for` with twice the releases; weights (3, 7) give
    the second hop less noise than the first.
    """
    for weight in weights:
        expect_positive("weights", weight)
    cap = cap_for(budget=budget, rows=rows)
    total = math.fsum(weights)
    return [
        noise_std_within(
            room=cap * ROUND_DOWN * (weight / total),
            cap=cap,
            releases=releases,
            endpoint_shift=endpoint_shift,
        )
        for weight in weights
    ]


def epsilon_for(
    *,
    noise_std: float,
    releases: int,
    delta: float,
    endpoint_shift: float = 1.0,
    rows: float = EDGE_ROWS,
) -> float:
    """Epsilon after `releases` releases to the same node, rounded up; inf without noise."""
    expect_count("releases", releases, at_least=0)
    if releases == 0:
        return 0.0
    charge = charge_of(noise_std=noise_std, endpoint_shift=endpoint_shift)
    return spent_epsilon(spent=releases * charge, delta=delta, rows=rows)


def releases_left(
    *, cap: float, spent: float, noise_std: float, endpoint_shift: float = 1.0
) -> int:
    """Number of further releases that fit between `spent` and `cap`, in exact arithmetic."""
    charge = charge_of(noise_std=noise_std, endpoint_shift=endpoint_shift)
    if math.isinf(charge) or spent > cap:
        return 0
    return (Fraction(cap) - Fraction(spent)) // Fraction(charge)


def noise_std_within(
    *, room: float, cap: float, releases: int, endpoint_shift: float = 1.0
) -> float:
    """Smallest noise with which `releases` releases fit into `room`, a part of `cap`, rounded up.

    Raises:
        InputError: nothing is left, so no noise is large enough.
    """
    expect_count("releases", releases, at_least=1)
    expect_positive("endpoint_shift", endpoint_shift)
    share = room / releases * ROUND_DOWN - cap * COST_GRAIN
    expect(
        share > 0,
        name="releases",
        wanted="room for releases within the budget",
        got=releases,
        remedy="plan fewer releases or a larger epsilon",
    )
    return math.nextafter(endpoint_shift / math.sqrt(share) * ROUND_UP, math.inf)
