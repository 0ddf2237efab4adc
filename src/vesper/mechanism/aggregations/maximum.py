"""Coordinate-wise maximum in exact integers (claim S-MAX, on the grid).

aggregated[v]_i = max(0, max over u in N(v) of message[u]_i)
"""

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import RowAggregation, RowKernel
from vesper.mechanism.aggregations.grid import STEPS, Messages


class GridMax(RowAggregation):
    """Largest value of each coordinate among neighbours, and at least 0.

    Claim: S-MAX (floor 0, on the grid). One edge moves each endpoint's row by at most STEPS.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): messages are functions of edge-free data and of earlier releases.
    Moves: at most two rows, those of the endpoints.
    Tight: yes, two nodes, non-negative messages of norm 1.
    Proof: docs/claims/S-MAX.md.
    """

    name, steps, moves_others = "maximum", STEPS, False
    endpoint_shift = 1.0

    def refuse(self, messages: Messages) -> None:
        """Refuse nothing: any messages on the grid can be compared."""

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return the kernel that compares integers."""
        from vesper.mechanism.aggregations.weighted_kernels import largest_of_rows

        return RowKernel(largest_of_rows)
