"""Noisy neighbour sums in exchange for a receipt: the one function through which edges leave.

    released[v] = (sum over u in N(v) of grid[u] + K_v) / STEPS
    K_v         = round(STEPS * noise_std * N(0, I))

This equals a Gaussian release of messages of norm at most 1, rounded to the grid: rounding is
post-processing, so the cost is exactly that of R-SUM (claim R-GRID). Other aggregations have their
own integers and steps (`aggregations`). For the node relation, sums are clipped before the noise
(claim N-NODE).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.grid import Messages, align_rows, refuse_long
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.aggregations.partition import noisy_rows
from vesper.mechanism.aggregations.row_noise import rounding_of
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.events import SUM, ClippedRelease, GaussianRelease
from vesper.privacy.ledger.receipt import Receipt, Receivers, encode, is_everyone

NEIGHBOR_SUM = NeighborSum()
PROVED_AGGREGATIONS = (NeighborSum, GridAttention, GridMax, GridGcn)
"""Aggregations whose shift is bounded by a claim; no others may read edges for a receipt."""


def release(
    graph: Graph,
    messages: Messages,
    receivers: Receivers,
    *,
    event: GaussianRelease | ClippedRelease,
    receipt: Receipt,
    account: str,
    noise: NoiseSource,
    aggregation: Aggregation = NEIGHBOR_SUM,
) -> NDArray[np.float32]:
    """Release the noisy neighbour sum of `messages` for `receivers`; (num_receivers, width).

    Everything that can be checked is checked, and the receipt is used up, before an edge is read.
    `account` is the name of the graph's account, to which the receipt belongs.

    Claim: R-GRID. Sums of integer messages whose rows have a sum of squares of at most STEPS^2,
        plus noise from exactly the law of round(STEPS noise_std N(0, 1)), are mu-GDP with
        mu^2 = (1[a in R] + 1[b in R]) / noise_std^2 for receivers R, as without the grid (R-SUM).
    Relation: differ by one edge {a, b}.
    Assumes (caller verifies): messages and receivers are chosen without reading an edge, except
        through earlier releases; AES-256 in counter mode is as good as uniform bits.
    Moves: two rows, those of the two endpoints, where they are receivers.
    Tight: in the limit of a fine grid; on a coarse grid the true cost is lower.
    Proof: docs/claims/R-GRID.md.

    Raises:
        BudgetError: the receipt is for another graph, event or receiver set, or was used before;
            or the event was charged for less than one edge can move, or to too few nodes.
        InputError: messages longer than 1.
    """
    messages = align_rows(messages)  # a copy, so that other threads cannot change what was checked
    _refuse_smaller_shift(event, aggregation, width=messages.shape[1])
    receivers = None if receivers is None else np.array(receivers)
    if len(messages) != graph.num_nodes:
        raise InputError(f"Expected {graph.num_nodes} messages, got {len(messages)}.")
    refuse_long(messages)
    aggregation.refuse(messages)
    encoded_receivers = encode(receivers, graph.num_nodes)
    if aggregation.moves_others and not is_everyone(encoded_receivers):
        raise BudgetError(
            "One edge also moves rows of other nodes in this release: charge it to every node."
        )
    receipt.spend(event=event, receivers=encoded_receivers, graph=account)
    return noisy_rows(
        aggregation,
        graph,
        messages,
        receivers,
        noise=noise,
        noise_std=event.noise_std,
        row_norm=event.row_norm if isinstance(event, ClippedRelease) else None,
    )


def _refuse_smaller_shift(
    event: GaussianRelease | ClippedRelease, aggregation: Aggregation, *, width: int
) -> None:
    """Refuse an event that was charged for less than one edge moves, or for something else."""
    if type(aggregation) not in PROVED_AGGREGATIONS:
        raise BudgetError("No claim bounds how far one edge moves this aggregation.")
    if isinstance(event, ClippedRelease):
        is_named = aggregation.name == SUM
        is_enough = event.rounding >= rounding_of(width)
    else:
        is_named = aggregation.name == event.aggregation
        is_enough = event.endpoint_shift >= aggregation.endpoint_shift
    if not is_named:
        raise BudgetError("The receipt was charged for another aggregation than this one.")
    if not is_enough:
        raise BudgetError("The receipt was charged for a smaller shift than this release has.")
