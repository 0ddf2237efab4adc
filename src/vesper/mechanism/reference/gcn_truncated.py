"""Truncated GCN, the paper's Algorithm 2: its claim is refuted, the true bound is proved here.

    aggregated[v] = message[v] / (d_v + 1) + sum over u in N(v) of message[u] s(d_u) s(d_v)
                                                                           if d_v >= min_degree
                    branch[v]                                              else
    s(d)          = 1 / sqrt(d + 1),    branch[v] = W_tr h_v + b_tr, edge-free

Removing one edge can take both endpoints below `min_degree`, and then their whole rows are replaced
by the branch. Senders of low degree still count, with weights up to s(1) s(min_degree). Use
`ClampedGcn` instead.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.reference.gcn import eta
from vesper.mechanism.reference.linear import Degrees, DegreeWeights, Floats, degrees_of, rounded_up
from vesper.privacy.accounting.safe_numbers import expect, expect_count


class TruncatedGcn(DegreeWeights):
    """GCN rows for nodes with at least `min_degree` neighbours, edge-free rows for all others.

    Claim: S-GCN-TRUNC. One edge moves the output by at most
        S = sqrt 2 (branch_norm + 2 / (m + 1) + (m - 1) / sqrt(2 (m + 1))), m = `min_degree`:
        2.93, 3.12, 3.52, 4.38, 5.70, 7.57 at m = 2, 3, 5, 10, 20, 40 and branch_norm 1. The paper
        claims eta(m), which is 3 to 144 times too small there.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): messages of norm at most 1 and branch rows of norm at most
        `branch_norm`, all edge-free. The paper bounds neither W_tr nor b_tr.
    Moves: endpoints with m neighbours or more, and all neighbours of endpoints that have m or
        more themselves.
    Tight: yes, two joined stars with m - 1 leaves each, branch rows opposite to the messages.
    Proof: docs/claims/S-GCN-TRUNC.md.

    Raises:
        InputError: `min_degree` or `branch_norm` is below 1.
    """

    moves_neighbors = True

    def __init__(self, *, min_degree: int, branch_norm: float = 1.0) -> None:
        expect_count("min_degree", min_degree, at_least=1)
        expect(
            1 <= branch_norm < math.inf,
            name="branch_norm",
            wanted="a finite branch_norm >= 1",
            got=branch_norm,
            remedy="bound ||W_tr|| + ||b_tr||",
        )
        self.min_degree, self.branch_norm = min_degree, branch_norm

    def self_weight(self, degrees: Degrees) -> Floats:
        """Return 1 / (d + 1), or 0 below `min_degree`."""
        return np.where(self._is_aggregated(degrees), 1 / (np.asarray(degrees) + 1.0), 0.0)

    def edge_weight(self, sender_degrees: Degrees, receiver_degrees: Degrees) -> Floats:
        """Return 1 / sqrt((d_u + 1) (d_v + 1)), or 0 if the receiver is below `min_degree`."""
        product = (np.asarray(sender_degrees) + 1.0) * (np.asarray(receiver_degrees) + 1.0)
        return np.where(self._is_aggregated(receiver_degrees), 1 / np.sqrt(product), 0.0)

    def branch_weight(self, degrees: Degrees) -> Floats:
        """Return the weight of the edge-free branch: 1 below `min_degree`, else 0."""
        return np.where(self._is_aggregated(degrees), 0.0, 1.0)

    def operator(self, graph: Graph) -> Floats:
        """Return the matrix for messages above unit branch rows, (num_nodes, 2 * num_nodes)."""
        branch = self.branch_norm * np.diag(self.branch_weight(degrees_of(graph)))
        return np.hstack([super().operator(graph), branch])

    def aggregate_with(self, graph: Graph, messages: Floats, branch: Floats) -> Floats:
        """Aggregate; rows of too low a degree come from `branch`, (num_nodes, width).

        Raises:
            InputError: messages longer than 1, or branch rows longer than `branch_norm`.
        """
        longest = float(np.sqrt(np.square(branch).sum(axis=1)).max(initial=0.0))
        if branch.shape != messages.shape or not longest <= self.branch_norm * (1 + 1e-5):
            raise InputError(
                f"branch: expected {messages.shape} rows of norm at most {self.branch_norm:g}, "
                f"got {branch.shape} of norm up to {longest:g}; bound W_tr and b_tr"
            )
        substitutes = self.branch_weight(degrees_of(graph))[:, None] * branch  # (num_nodes, width)
        return self.aggregate(graph, messages) + substitutes

    def edge_sensitivity(self) -> float:
        """Return S, the exact maximum over all pairs of graphs and all branches of that norm."""
        m = float(self.min_degree)
        crossing = self.branch_norm + 2 / (m + 1) + (m - 1) / math.sqrt(2 * (m + 1))
        return rounded_up(math.sqrt(2) * crossing)

    def claimed_edge_sensitivity(self) -> float:
        """Return the paper's eta(m), claimed "on any graph": refuted."""
        return eta(self.min_degree)

    def _is_aggregated(self, degrees: Degrees) -> NDArray[np.bool_]:
        return np.asarray(degrees) >= self.min_degree
