"""GCN with clamped degrees (claim S-GCN-CLAMP): small sensitivity on *every* graph.

    c(d)          = max(d, min_degree) + 1
    aggregated[v] = message[v] / c(d_v) + sum over u in N(v) of message[u] / sqrt(c(d_u) c(d_v))

The sound replacement for the paper's truncated GCN: no row is ever replaced, and a node of low
degree sends and receives with the weights of a node that has `min_degree` neighbours.
"""

import numpy as np

from vesper.mechanism.reference.gcn import TURNING_DEGREE, largest_joint_move
from vesper.mechanism.reference.linear import Degrees, DegreeWeights, Floats
from vesper.privacy.accounting.safe_numbers import expect_count


class ClampedGcn(DegreeWeights):
    """GCN in which degrees count as at least `min_degree`.

    Claim: S-GCN-CLAMP. One edge moves the output by at most
        max over d_p, d_q of sqrt(square(d_p, d_q) + square(d_q, d_p)), with
        square(d, e) = (own + edge + (d - 1) drop)^2 + (d - 1) drop^2 as in `gcn`: 0.847, 0.604,
        0.470, 0.325, 0.184, 0.0986, 0.0511 at min_degree = 1, 2, 3, 5, 10, 20, 40.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): rows of norm at most 1, edge-free; `min_degree` is public.
    Moves: the endpoints, and the other neighbours of an endpoint whose degree is above
        `min_degree`.
    Tight: yes, two joined stars with `min_degree` leaves each.
    Proof: docs/claims/S-GCN-CLAMP.md.

    Raises:
        InputError: `min_degree` is below 1.
    """

    moves_neighbors = True

    def __init__(self, *, min_degree: int) -> None:
        expect_count("min_degree", min_degree, at_least=1)
        self.min_degree = min_degree

    def self_weight(self, degrees: Degrees) -> Floats:
        """Return 1 / c(d)."""
        return 1 / (np.maximum(degrees, self.min_degree) + 1.0)

    def edge_weight(self, sender_degrees: Degrees, receiver_degrees: Degrees) -> Floats:
        """Return 1 / sqrt(c(d_u) c(d_v))."""
        senders = np.maximum(sender_degrees, self.min_degree) + 1.0
        receivers = np.maximum(receiver_degrees, self.min_degree) + 1.0
        weights: Floats = 1 / np.sqrt(senders * receivers)
        return weights

    def edge_sensitivity(self) -> float:
        """Return the exact maximum over all pairs of graphs."""
        lowest = self.min_degree  # covers all smaller degrees too: they count the same
        return largest_joint_move(
            counted=lambda degree: max(degree, self.min_degree),
            neighbor_degree=self.min_degree,
            degrees=range(lowest, max(lowest + 1, TURNING_DEGREE) + 1),
        )
