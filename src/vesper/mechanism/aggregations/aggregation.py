"""Interface of aggregations: integer functions of neighbours' messages that one edge moves little.

    || aggregate(G) - aggregate(G') ||  <=  sqrt 2 endpoint_shift steps
                                            G, G' differ by one edge; l2, over all rows together

| aggregation | claim | rows that move |
| --- | --- | --- |
| `NeighborSum` | R-SUM | the endpoints |
| `GridAttention` | S-ATT, on the grid | the endpoints |
| `GridMax` | S-MAX, on the grid | the endpoints |
| `GridGcn` | S-GCN-CLAMP, on the grid | the endpoints and their neighbours |

All have `endpoint_shift` 1: one that would move by more or less is scaled. So every release costs
each node the same, and noise is planned alike for all aggregations.

Aggregations are computed row by row, so that any thread or worker can compute any row:

    row v  =  function(neighbours of v, messages, tables of all nodes, entries for v)

The tables may depend on edges (the degrees of `GridGcn` do). They are the same for all rows, and
how far they differ between neighbouring graphs is covered by the claim of the aggregation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph, Neighbors
from vesper.mechanism.aggregations.grid import Messages, padded_rows, refuse_long
from vesper.parallel import pool
from vesper.parallel.pool import threads_allowed

LARGEST_DEGREE = 1 << 24
"""Degrees stay below this, so that a sum of entries up to 64, plus noise, fits 32 bits."""

LARGEST_GRAPH = LARGEST_DEGREE
"""Number of nodes up to which no degree can be too large, so that none is checked."""

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class RowKernel:
    """How to compute rows of the output from some rows of a graph.

    Args:
        function: takes the starts and stops of rows, neighbors, the width, messages as
            `padded_rows` returns them, and then the following arguments; defined at the top level
            of its module.
        sender_tables: arrays with one row per node, which a row reads at its senders.
        own: arrays with one row per node, which a row reads at its receiver.
        scalars: numbers, the same for all rows.
    """

    function: Callable[..., NDArray[np.int32]]
    sender_tables: tuple[NDArray[Any], ...] = ()
    own: tuple[NDArray[Any], ...] = ()
    scalars: tuple[int, ...] = ()


class RowAggregation(ABC):
    """Base class of all aggregations: rows are computed one by one."""

    @abstractmethod
    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return how rows of the output are computed from rows of the graph."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """Compute the rows of `receivers` in this process; None: all nodes."""
        refuse_inexact(graph, messages)
        kernel, indptr = self.row_kernel(graph, messages), np.asarray(graph.indptr)
        starts, stops, own = indptr[:-1], indptr[1:], kernel.own
        if receivers is not None:
            starts, stops = starts[receivers], stops[receivers]
            own = tuple(each[receivers] for each in own)
        return kernel.function(
            starts,
            stops,
            np.asarray(graph.neighbors),
            messages.shape[1],
            padded_rows(messages),
            *kernel.sender_tables,
            *own,
            *kernel.scalars,
        )


def refuse_inexact_degrees(graph: Graph) -> None:
    """Refuse degrees of 2^24 or more.

    Raises:
        InputError: there is one.
    """
    if graph.num_nodes > LARGEST_GRAPH and int(np.diff(graph.indptr).max()) >= LARGEST_DEGREE:
        raise InputError(f"Expected degrees below {LARGEST_DEGREE}: sums must fit 32 bits.")


def refuse_inexact(graph: Graph, messages: Messages) -> None:
    """Refuse what cannot be summed exactly.

    Raises:
        InputError: not one message per node, rows longer than 1, or a degree of 2^24 or more.
    """
    refuse_inexact_degrees(graph)
    if messages.ndim != 2 or len(messages) != graph.num_nodes:
        raise InputError(
            f"Expected one message for each of {graph.num_nodes} nodes, got {messages.shape}."
        )
    refuse_long(messages)  # the kernels rely on it against overflow, too


class Aggregation(Protocol):
    """Function of messages on the grid to integers, with `steps` per unit."""

    @property
    def name(self) -> str:
        """Name of the aggregation in the ledger."""

    @property
    def steps(self) -> int:
        """Integer steps in one unit of the output."""

    @property
    def endpoint_shift(self) -> float:
        """What each node is charged for: the l2 move of all rows together, over sqrt 2."""

    @property
    def moves_others(self) -> bool:
        """Whether rows of nodes other than the endpoints move: then every node must be charged."""

    def refuse(self, messages: Messages) -> None:
        """Raise if messages cannot be aggregated; called before anything is charged."""

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Return how rows of the output are computed from rows of the graph."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """Aggregate (num_nodes, width) messages to (num_receivers, width); None: all nodes."""


ROWS_PER_PIECE = 1024
"""Receivers per piece: large enough to be worth taking, small enough to share evenly."""

Ints = NDArray[np.int64]


def run_rows(
    kernel: Callable[..., None],
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    width: int,
    *inputs: Any,
) -> NDArray[np.int32]:
    """Run a kernel that writes one row per receiver; (num_receivers, width).

    Args:
        kernel: called with the work, its thread number, `starts`, `stops`, `neighbors`, the rows
            to write, and `inputs`. One thread writes a row, from these alone.
        starts: (num_receivers,) position in `neighbors` where each receiver's neighbours start.
        stops: (num_receivers,) position where they stop.
        neighbors: neighbours of these receivers, and possibly of others.
        width: entries per message.
        inputs: messages, (num_nodes, width or more), and whatever else the kernel reads.
    """
    out = np.zeros((len(starts), width), dtype=np.int32)
    pool.run(
        kernel,
        starts,
        stops,
        neighbors,
        out,
        *(_read_only(each) for each in inputs),
        num_pieces=-(-len(starts) // ROWS_PER_PIECE) if width else 0,
        num_threads=threads_allowed(),
    )
    return out


def _read_only(value: Any) -> Any:
    """Read-only view of an array: workers of an engine get those, so kernels compile only once."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.setflags(write=False)
    return view
