"""Sum over neighbours, and its bound (claim R-SUM).

aggregated[v] = sum over u in N(v) of message[u]        for v in receivers
"""

import math

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import RowAggregation, RowKernel
from vesper.mechanism.aggregations.grid import STEPS, Messages
from vesper.privacy.events import SUM


class NeighborSum(RowAggregation):
    """Sum of the neighbours' messages, without the own message.

    Claim: R-SUM.
    Relation: differ by one edge.
    Assumes (caller verifies): messages and receivers do not depend on edges; rows of norm <= 1.
    Moves: two rows, those of the two endpoints, where they are receivers.
    Tight: yes, two nodes, messages of norm 1.
    Proof: docs/claims/R-SUM.md.
    """

    name, steps, moves_others = SUM, STEPS, False
    endpoint_shift = 1.0
    """l2 move of one endpoint's row."""

    def edge_sensitivity(self) -> float:
        """Return the l2 move of the whole output when one edge changes: sqrt 2."""
        return math.sqrt(2) * self.endpoint_shift

    def refuse(self, messages: Messages) -> None:
        """Refuse nothing: any messages on the grid can be summed."""

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return the kernel that sums int8 messages exactly, in int32."""
        from vesper.mechanism.aggregations.sum_kernels import sums_of_rows

        return RowKernel(sums_of_rows)
