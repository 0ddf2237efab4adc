"""GIN: sum over neighbours plus the own message (the paper's Proposition 1).

aggregated[v] = own_scale message[v] + sum over u in N(v) of message[u]
"""

import math

import numpy as np

from vesper.mechanism.reference.linear import Degrees, DegreeWeights, Floats


class GinAggregation(DegreeWeights):
    """Sum in which every edge has weight 1, as has the own message in the paper.

    Claim: S-GIN. One edge moves the output by at most sqrt 2.
    Relation: differ by one edge.
    Assumes (caller verifies): messages do not depend on edges and, after any linear map, have
        rows of norm at most 1; every neighbour is summed. A *sampled* neighbour set gains another
        neighbour when an edge is removed: see `hash_cap.SmallestHashes`.
    Moves: two rows, those of the endpoints.
    Tight: yes, two nodes, messages of norm 1.
    Proof: docs/claims/S-GIN.md.

    Args:
        own_scale: weight of the own message, public; it involves no edge and costs nothing.
    """

    moves_neighbors = False

    def __init__(self, *, own_scale: float = 1.0) -> None:
        self.own_scale = own_scale

    def self_weight(self, degrees: Degrees) -> Floats:
        """Return `own_scale`."""
        return np.full(np.shape(degrees), self.own_scale)

    def edge_weight(self, sender_degrees: Degrees, receiver_degrees: Degrees) -> Floats:
        """Return 1."""
        return np.ones(np.broadcast_shapes(np.shape(sender_degrees), np.shape(receiver_degrees)))

    def edge_sensitivity(self) -> float:
        """Return sqrt 2."""
        return math.sqrt(2)

    def claimed_edge_sensitivity(self) -> float:
        """Return the paper's claim, which is sqrt 2 too and correct."""
        return math.sqrt(2)
