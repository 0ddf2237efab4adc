"""Bounded attention in whole numbers (claim S-ATT, on the grid).

    score(u, v)   = max(0, <key_u, query_v>) / STEPS^2      from 0 to 1, as norms are at most 1
    aggregated[v] = sum over u in N(v) of towards zero(score(u, v) message[u])

Nothing is normalised over the neighbours of a node: one edge more would change every weight.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import RowAggregation, RowKernel
from vesper.mechanism.aggregations.grid import STEPS, Messages, refuse_long, to_grid


class GridAttention(RowAggregation):
    """Neighbours weigh as much as their key agrees with the receiver's query.

    Claim: S-ATT (bounded, on the grid). One edge moves each endpoint's row by at most STEPS.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): keys, queries and messages are functions of edge-free data and of
        earlier releases.
    Moves: two rows, those of the endpoints.
    Tight: yes, two nodes whose keys and queries are all equal, of norm 1.
    Proof: docs/claims/S-ATT.md.

    Args:
        keys: (num_nodes, key_width) of senders, rows of norm at most 1.
        queries: (num_nodes, key_width) of receivers, rows of norm at most 1.

    Raises:
        InputError: rows longer than 1 or not finite, or of two shapes.
    """

    name, steps, moves_others = "attention", STEPS, False
    endpoint_shift = 1.0

    def __init__(self, *, keys: NDArray[np.float32], queries: NDArray[np.float32]) -> None:
        if keys.shape != queries.shape:
            raise InputError(
                f"Expected keys and queries alike, got shapes {keys.shape}, {queries.shape}."
            )
        self._keys, self._queries = to_grid(keys), to_grid(queries)
        for rows in (self._keys, self._queries):
            rows.setflags(write=False)

    def refuse(self, messages: Messages) -> None:
        """Refuse messages of other nodes than those that have keys."""
        if len(messages) != len(self._keys):
            raise InputError(f"Expected {len(messages)} keys, one a node, got {len(self._keys)}.")

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Weigh and sum exactly, in int32."""
        from vesper.mechanism.aggregations.weighted_kernels import attention_of_rows

        self.refuse(messages)
        for rows in (self._keys, self._queries):
            refuse_long(rows)  # scores are at most 1 because of it
        return RowKernel(attention_of_rows, sender_tables=(self._keys,), own=(self._queries,))
