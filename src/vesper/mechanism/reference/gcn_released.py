"""GCN weighted by degrees from an earlier release (claim S-GCN-RELEASED).

    w_v         = 1 / sqrt(max(released_degree_v, 0) + 1)  <= 1     from an earlier release
    released[v] = w_v (sum over u in N(v) of w_u message[u]  +  noise)

The sender's weight shortens its message before the sum; the receiver's weight is applied after the
noise, as post-processing. No true degree is read.
"""

import math

import numpy as np

from vesper.errors import InputError, first_three
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import Floats, LinearAggregation


class ReleasedGcn(LinearAggregation):
    """Sum of messages that are shortened by released degrees.

    Claim: S-GCN-RELEASED. One edge moves the output by at most sqrt 2, like the sum.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): `released_degrees` come from earlier, charged releases; rows of norm
        at most 1, edge-free.
    Moves: two rows, those of the endpoints.
    Tight: yes when two released degrees are 0 or less; the move over {a, b} is
        sqrt(w_a^2 + w_b^2), with public weights.
    Proof: docs/claims/S-GCN-RELEASED.md.

    Args:
        released_degrees: (num_nodes,) noisy degrees; negative ones count as 0.

    Raises:
        InputError: a released degree is not finite, or there is not one per node.
    """

    def __init__(self, released_degrees: Floats) -> None:
        broken = np.flatnonzero(~np.isfinite(released_degrees))
        if released_degrees.ndim != 1 or len(broken):
            raise InputError(
                f"released_degrees: expected one finite number per node, got shape "
                f"{released_degrees.shape} with {len(broken)} not finite ({first_three(broken)})"
            )
        self.node_weights: Floats = 1 / np.sqrt(np.maximum(released_degrees, 0.0) + 1.0)

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Self weights of 0; edge weights are those of the sender."""
        if len(self.node_weights) != graph.num_nodes:
            raise InputError(
                f"released_degrees: expected {graph.num_nodes}, one per node, got "
                f"{len(self.node_weights)}"
            )
        return np.zeros(graph.num_nodes), self.node_weights[graph.neighbors]

    def edge_sensitivity(self) -> float:
        """Return sqrt 2."""
        return math.sqrt(2)

    def weigh_receivers(self, perturbed: Floats) -> Floats:
        """Apply the receivers' weights after the noise, as post-processing; (num_nodes, width)."""
        return self.node_weights[:, None] * perturbed
