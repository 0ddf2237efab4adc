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

from vesper.graph.graph import Graph
from vesper.mechanism.grid import Messages
from vesper.mechanism.row_maker import Nodes, RowMaker


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

    def row_maker(self, graph: Graph, messages: Messages) -> RowMaker:
        """Say how rows of its output are made from rows of the graph."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """(num_nodes, width) messages to (num_receivers, width); None: all nodes."""
