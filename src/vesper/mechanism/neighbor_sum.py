"""The sum over neighbours and its bound (claim R-SUM).

aggregated[v] = sum over u in N(v) of message[u]        for v in receivers
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.grid import Messages, refuse_long

LARGEST_DEGREE = 1 << 24
"""So many messages of size 64 may still be added in 32 bits, noise included."""

LARGEST_GRAPH = LARGEST_DEGREE
"""Up to here no degree can be too large, and none is looked at."""


class NeighborSum:
    """Sum of the neighbours' messages; the own message is not in it.

    Claim: R-SUM.
    Relation: differ by one edge.
    Assumes (caller verifies): messages and receivers do not depend on edges; rows of norm <= 1.
    Moves: two rows, those of the two endpoints, where they are receivers.
    Tight: yes, two nodes, unit messages.
    Proof: docs/claims/R-SUM.md.
    """

    endpoint_shift = 1.0
    """l2 move of one endpoint's row."""

    def edge_sensitivity(self) -> float:
        """l2 move of the whole output when one edge changes: sqrt 2."""
        return math.sqrt(2) * self.endpoint_shift

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: NDArray[np.int64] | None
    ) -> NDArray[np.int32]:
        """Sum int8 messages exactly, in int32."""
        from numba import get_num_threads

        from vesper.graph import team
        from vesper.mechanism.sum_kernels import ROWS, pack, sum_rows

        if graph.num_nodes > LARGEST_GRAPH and int(np.diff(graph.indptr).max()) >= LARGEST_DEGREE:
            raise InputError(f"Expected degrees below {LARGEST_DEGREE}: sums must fit 32 bits.")
        if receivers is None:
            receivers = np.arange(graph.num_nodes)
        if messages.ndim != 2 or len(messages) != graph.num_nodes:
            raise InputError(
                f"Expected one message for each of {graph.num_nodes} nodes, got {messages.shape}."
            )
        refuse_long(messages)  # what the lanes of the kernel can hold rests on it too
        packed, stride = pack(messages)
        out = np.empty((len(receivers), messages.shape[1]), dtype=np.int32)
        team.run(
            sum_rows,
            np.asarray(graph.indptr),
            np.asarray(graph.neighbors),
            packed,
            stride,
            receivers,
            out,
            num_pieces=-(-len(receivers) // ROWS),
            num_threads=get_num_threads(),
        )
        return out
