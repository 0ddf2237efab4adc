"""Mean over neighbours with a clamped count (claim S-MEAN-CLAMP).

aggregated[v] = (sum over u in N(v) of message[u]) / max(d_v, min_degree)
"""

import math

import numpy as np

from vesper.mechanism.reference.linear import Degrees, DegreeWeights, Floats, rounded_up
from vesper.privacy.accounting.safe_numbers import expect_count


class ClampedMean(DegreeWeights):
    """Mean of at least `min_degree` terms, missing ones counted as 0; no own message.

    Claim: S-MEAN-CLAMP. One edge moves the output by at most 2 sqrt 2 / (min_degree + 1).
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): rows of norm at most 1, edge-free; `min_degree` is public.
    Moves: two rows, those of the endpoints.
    Tight: yes, two joined stars with `min_degree` leaves each, leaves opposite to the far centre.
    Proof: docs/claims/S-MEAN-CLAMP.md.

    Raises:
        InputError: `min_degree` is below 1.
    """

    moves_neighbors = False

    def __init__(self, *, min_degree: int) -> None:
        expect_count("min_degree", min_degree, at_least=1)
        self.min_degree = min_degree

    def self_weight(self, degrees: Degrees) -> Floats:
        """Return 0: the own row is edge-free and is passed on without noise."""
        return np.zeros(np.shape(degrees))

    def edge_weight(self, sender_degrees: Degrees, receiver_degrees: Degrees) -> Floats:
        """Return 1 / max(d_v, min_degree), whatever the sender's degree."""
        divisors = np.maximum(receiver_degrees, self.min_degree)
        weights: Floats = np.ones(np.shape(sender_degrees)) / divisors
        return weights

    def edge_sensitivity(self) -> float:
        """Return 2 sqrt 2 / (min_degree + 1)."""
        return rounded_up(2 * math.sqrt(2) / (self.min_degree + 1))
