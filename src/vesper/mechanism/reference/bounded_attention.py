"""Attention with bounded scores (claim S-ATT), with and without normalisation.

    bounded:  aggregated[v] = sum over u in N(v) of score(u, v) message[u],     score in [0, 1]
    softmax:  aggregated[v] = sum over u in N(v) + {v} of e^logit(u, v) message[u] / Z_v,
              Z_v           = sum over u in N(v) + {v} of e^logit(u, v),  |logit| <= logit_bound

Normalisation has a cost: when an edge is removed, all other weights of the row grow. The bounded
sum has the sensitivity of the plain sum, the softmax up to twice that.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import Floats, LinearAggregation, receivers_of, rounded_up
from vesper.privacy.accounting.safe_numbers import expect

Score = Callable[[NDArray[np.int64], NDArray[np.int64]], Floats]
"""Scores of (senders, receivers), elementwise, from edge-free encodings and parameters."""


class BoundedAttention(LinearAggregation):
    """Unnormalised attention.

    Claim: S-ATT (bounded). One edge moves the output by at most sqrt 2.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): `score` is a function of edge-free data, with parameters that were
        trained without a gradient through the adjacency; rows of norm at most 1.
    Moves: two rows, those of the endpoints.
    Tight: yes, two nodes with score 1.
    Proof: docs/claims/S-ATT.md.

    Raises:
        InputError: a score lies outside [0, 1].
    """

    def __init__(self, score: Score) -> None:
        self.score = score

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Self weights of 0; edge weights are the scores."""
        scores = self.score(graph.neighbors.astype(np.int64), receivers_of(graph))
        _refuse_outside("score", scores, lowest=0.0, highest=1.0)
        return np.zeros(graph.num_nodes), scores

    def edge_sensitivity(self) -> float:
        """Return sqrt 2."""
        return math.sqrt(2)


class SoftmaxAttention(LinearAggregation):
    """Normalised attention over the neighbours and the node itself, as in GAT.

    Claim: S-ATT (softmax). One edge moves each endpoint's row by at most
        2 e^{2k} / (e^{2k} + 1), k = `logit_bound`, and the output by sqrt 2 times that: 1.76 and
        2.49 at k = 1. Never less than the plain sum.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): as for `BoundedAttention`.
    Moves: two rows, those of the endpoints.
    Tight: yes, two nodes, logit k across the edge, -k for the node itself, opposite messages.
    Proof: docs/claims/S-ATT.md.

    Raises:
        InputError: `logit_bound` is outside [0, 300], or a logit is outside its bound.
    """

    def __init__(self, logit: Score, *, logit_bound: float) -> None:
        expect(
            0 <= logit_bound <= 300,
            name="logit_bound",
            wanted="0 <= logit_bound <= 300",
            got=logit_bound,
            remedy="bound the attention kernel, with tanh for example",
        )
        self.logit, self.logit_bound = logit, logit_bound

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Self and edge weights; those of one receiver sum to 1."""
        nodes, receivers = np.arange(graph.num_nodes), receivers_of(graph)
        own = self.logit(nodes, nodes)  # (num_nodes,)
        others = self.logit(graph.neighbors.astype(np.int64), receivers)  # (2 * num_edges,)
        for logits in (own, others):
            _refuse_outside("logit", logits, lowest=-self.logit_bound, highest=self.logit_bound)
        own, others = np.exp(own), np.exp(others)
        total = own + np.bincount(receivers, weights=others, minlength=graph.num_nodes)
        return own / total, others / total[receivers]

    def endpoint_shift(self) -> float:
        """Return 2 e^{2k} / (e^{2k} + 1)."""
        return rounded_up(2 / (1 + math.exp(-2 * self.logit_bound)))

    def edge_sensitivity(self) -> float:
        """Return the shift of one endpoint, times sqrt 2."""
        return rounded_up(math.sqrt(2) * self.endpoint_shift())


def _refuse_outside(name: str, values: Floats, *, lowest: float, highest: float) -> None:
    outside = values[~((values >= lowest) & (values <= highest))]
    if len(outside):
        raise InputError(
            f"{name}: expected numbers from {lowest:g} to {highest:g}, got {len(outside)} others, "
            f"the first {outside[0]:g}; bound the attention kernel"
        )
