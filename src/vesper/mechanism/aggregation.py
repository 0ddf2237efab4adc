"""What a door can make of neighbours' messages: whole numbers that one edge moves little.

    || aggregate(G) - aggregate(G') ||  <=  sqrt 2 endpoint_shift steps
                                            G, G' differ by one edge; l2, over all rows together

| aggregation | claim | rows that move |
| --- | --- | --- |
| `NeighborSum` | R-SUM | the endpoints |
| `GridAttention` | S-ATT, on the grid | the endpoints |
| `GridMax` | S-MAX, on the grid | the endpoints |
| `GridGcn` | S-GCN-CLAMP, on the grid | the endpoints and their neighbours |

All have `endpoint_shift` 1: one that would move by less, or more, is scaled until it does. So every
release costs each node the same, and noise is planned alike for all of them.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.grid import Messages, refuse_long

LARGEST_DEGREE = 1 << 24
"""So many messages of size 64 may still be added in 32 bits, noise included."""

LARGEST_GRAPH = LARGEST_DEGREE
"""Up to here no degree can be too large, and none is looked at."""

Nodes = NDArray[np.int64]


class Aggregation(Protocol):
    """From messages on the grid to whole numbers, `steps` a unit."""

    @property
    def name(self) -> str:
        """What the ledger calls it."""

    @property
    def steps(self) -> int:
        """Whole numbers in a unit of what it gives."""

    @property
    def endpoint_shift(self) -> float:
        """What is charged to each node: the l2 move of all rows together, over sqrt 2."""

    @property
    def moves_others(self) -> bool:
        """Whether rows of other nodes than the endpoints move: then every node must be charged."""

    def refuse(self, messages: Messages) -> None:
        """Raise if messages cannot be aggregated; asked before anything is paid."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """(num_nodes, width) messages to (num_receivers, width); None: all nodes."""


def checked_receivers(graph: Graph, messages: Messages, receivers: Nodes | None) -> Nodes:
    """Refuse what cannot be summed exactly; give the receivers as numbers.

    Raises:
        InputError: not one message a node, rows longer than 1, or a degree of 2^24 or more.
    """
    if graph.num_nodes > LARGEST_GRAPH and int(np.diff(graph.indptr).max()) >= LARGEST_DEGREE:
        raise InputError(f"Expected degrees below {LARGEST_DEGREE}: sums must fit 32 bits.")
    if messages.ndim != 2 or len(messages) != graph.num_nodes:
        raise InputError(
            f"Expected one message for each of {graph.num_nodes} nodes, got {messages.shape}."
        )
    refuse_long(messages)  # what the kernels can hold rests on it too
    return np.arange(graph.num_nodes) if receivers is None else receivers
