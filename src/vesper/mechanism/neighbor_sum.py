"""The sum over neighbours and its bound (claim R-SUM).

aggregated[v] = sum over u in N(v) of message[u]        for v in receivers
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.aggregation import checked_receivers
from vesper.mechanism.grid import STEPS, Messages
from vesper.privacy.events import SUM


class NeighborSum:
    """Sum of the neighbours' messages; the own message is not in it.

    Claim: R-SUM.
    Relation: differ by one edge.
    Assumes (caller verifies): messages and receivers do not depend on edges; rows of norm <= 1.
    Moves: two rows, those of the two endpoints, where they are receivers.
    Tight: yes, two nodes, unit messages.
    Proof: docs/claims/R-SUM.md.
    """

    name, steps, moves_others = SUM, STEPS, False
    endpoint_shift = 1.0
    """l2 move of one endpoint's row."""

    def edge_sensitivity(self) -> float:
        """l2 move of the whole output when one edge changes: sqrt 2."""
        return math.sqrt(2) * self.endpoint_shift

    def refuse(self, messages: Messages) -> None:
        """Messages on the grid can all be summed."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: NDArray[np.int64] | None
    ) -> NDArray[np.int32]:
        """Sum int8 messages exactly, in int32."""
        from vesper.mechanism.sum_kernels import sums_of_rows

        receivers = checked_receivers(graph, messages, receivers)
        indptr, neighbors = np.asarray(graph.indptr), np.asarray(graph.neighbors)
        return sums_of_rows(indptr, neighbors, np.ascontiguousarray(messages), receivers)
