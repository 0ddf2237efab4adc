"""Bounded attention in exact integers (claim S-ATT, on the grid).

    score(u, v)   = max(0, <key_u, query_v>) / STEPS^2      from 0 to 1, as norms are at most 1
    aggregated[v] = sum over u in N(v) of truncate(score(u, v) message[u])

Scores are not normalised over the neighbours of a node: one more edge would change every weight.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import RowAggregation, RowKernel
from vesper.mechanism.aggregations.grid import STEPS, Messages, refuse_long, to_grid


class GridAttention(RowAggregation):
    """Sum of messages, weighted by how well each sender's key matches the receiver's query.

    Claim: S-ATT (bounded, on the grid). One edge moves each endpoint's row by at most STEPS.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): keys, queries and messages are functions of edge-free data and of
        earlier releases.
    Moves: two rows, those of the endpoints.
    Tight: yes, two nodes whose keys and queries are all equal, of norm 1.
    Proof: docs/claims/S-ATT.md.

    Args:
        keys: (num_nodes, key_width) keys of senders, rows of norm at most 1.
        queries: (num_nodes, key_width) queries of receivers, rows of norm at most 1.

    Raises:
        InputError: rows longer than 1 or not finite, or keys and queries of different shapes.
    """

    name, steps, moves_others = "attention", STEPS, False
    endpoint_shift = 1.0

    def __init__(self, *, keys: NDArray[np.float32], queries: NDArray[np.float32]) -> None:
        if keys.shape != queries.shape:
            raise InputError(
                f"Expected keys and queries of one shape, got {keys.shape} and {queries.shape}."
            )
        self._keys, self._queries = to_grid(keys), to_grid(queries)
        for rows in (self._keys, self._queries):
            rows.setflags(write=False)

    def refuse(self, messages: Messages) -> None:
        """Refuse messages unless there is one for each key."""
        if len(messages) != len(self._keys):
            raise InputError(f"Expected {len(messages)} keys, one per node, got {len(self._keys)}.")

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return the kernel that weights and sums exactly, in int32."""
        from vesper.mechanism.aggregations.weighted_kernels import attention_of_rows

        self.refuse(messages)
        for rows in (self._keys, self._queries):
            refuse_long(rows)  # so that scores are at most 1
        return RowKernel(attention_of_rows, sender_tables=(self._keys,), own=(self._queries,))
