"""The one door: neighbour sums plus noise, for those who hold a receipt.

    released[v] = (sum over u in N(v) of grid[u] + K_v) / STEPS
    K_v         = round(STEPS * noise_std * N(0, I))

This equals a Gaussian release of unit messages, rounded to the grid: rounding is post-processing,
so the cost is exactly that of R-SUM (claim R-GRID). For the node relation sums are clipped before
the noise (claim N-NODE).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.clipped_grid import clip_on_grid, rounding_of
from vesper.mechanism.grid import STEPS, Messages, from_grid, refuse_long
from vesper.mechanism.neighbor_sum import NeighborSum
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.events import ClippedRelease, GaussianRelease
from vesper.privacy.receipt import Receipt
from vesper.privacy.receivers import Receivers, encode


def release(
    graph: Graph,
    messages: Messages,
    receivers: Receivers,
    *,
    event: GaussianRelease | ClippedRelease,
    receipt: Receipt,
    fingerprint: str,
    noise: NoiseSource,
) -> NDArray[np.float32]:
    """Release the noisy neighbour sum of `messages` for `receivers`; (num_receivers, width).

    Everything that can be checked is checked, and the receipt used up, before an edge is read.

    Raises:
        BudgetError: the receipt is for another graph, event or receiver set, or was used before.
        InputError: messages longer than 1.
    """
    _refuse_smaller_shift(event, width=messages.shape[1])
    messages = messages.copy()  # what is checked is what is summed, whatever other threads do
    receivers = None if receivers is None else np.array(receivers)
    if len(messages) != graph.num_nodes:
        raise InputError(f"Expected {graph.num_nodes} messages, got {len(messages)}.")
    refuse_long(messages)
    receipt.spend(event=event, receivers=encode(receivers, graph.num_nodes), graph=fingerprint)
    values = NeighborSum().aggregate(graph, messages, receivers)  # (num_receivers, width)
    if isinstance(event, ClippedRelease):
        clip_on_grid(values, row_norm=event.row_norm)
    noise.add_gaussian_to(values, scale=STEPS * event.noise_std)
    return from_grid(values)


def _refuse_smaller_shift(event: GaussianRelease | ClippedRelease, *, width: int) -> None:
    """Refuse an event that was charged for less than one edge moves a row by."""
    if isinstance(event, ClippedRelease):
        is_enough = event.rounding >= rounding_of(width)
    else:
        is_enough = event.endpoint_shift >= NeighborSum.endpoint_shift
    if not is_enough:
        raise BudgetError("The receipt was charged for a smaller shift than this release has.")
