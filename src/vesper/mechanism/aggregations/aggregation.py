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

Aggregations row by row, so that rows may be made anywhere, by who has them.

    row v  =  function(neighbours of v, messages, tables of all nodes, what is v's own)

What a table says of a node may come from edges (the degrees of `GridGcn` do); it is the same for
all rows, and in both of two graphs only as far as the claim of the aggregation says.

Rows shared out over the threads of this process.

A row is written by one thread from a row of the graph, messages and tables alone.
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
"""So many messages of size 64 may still be added in 32 bits, noise included."""

LARGEST_GRAPH = LARGEST_DEGREE
"""Up to here no degree can be too large, and none is looked at."""

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class RowKernel:
    """How rows are made by who has only these rows of a graph.

    Args:
        function: at the top level of its module; takes where rows start and stop, neighbors, the
            width, messages by `padded_rows`, and then the following.
        sender_tables: of all nodes, for what a row reads of its senders.
        own: of all nodes, for what a row reads of its receiver.
        scalars: the same for all.
    """

    function: Callable[..., NDArray[np.int32]]
    sender_tables: tuple[NDArray[Any], ...] = ()
    own: tuple[NDArray[Any], ...] = ()
    scalars: tuple[int, ...] = ()


class RowAggregation(ABC):
    """Aggregations whose rows are made one by one: all that there are."""

    @abstractmethod
    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Say how rows of its output are made from rows of the graph."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """Make all rows asked for, here."""
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


def refuse_inexact(graph: Graph, messages: Messages) -> None:
    """Refuse what cannot be summed exactly.

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

    def row_kernel(self, graph: Graph, messages: Messages) -> RowKernel:
        """Say how rows of its output are made from rows of the graph."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """(num_nodes, width) messages to (num_receivers, width); None: all nodes."""


ROWS_PER_PIECE = 1024
"""Receivers a piece: large enough to be worth taking, small enough to share evenly."""

Ints = NDArray[np.int64]


def run_rows(
    kernel: Callable[..., None],
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    width: int,
    *read: Any,
) -> NDArray[np.int32]:
    """Have a kernel write one row a receiver: (num_receivers, width).

    Args:
        kernel: gets the work, its seat, the following three, the rows to write, and `read`.
        starts: (num_receivers,) where each one's neighbours start.
        stops: (num_receivers,) and where they stop.
        neighbors: of these receivers, and maybe of others.
        width: entries of a message.
        read: messages, (num_nodes, width or more), and what else the kernel reads.
    """
    out = np.zeros((len(starts), width), dtype=np.int32)
    pool.run(
        kernel,
        starts,
        stops,
        neighbors,
        out,
        *(_read_only(each) for each in read),
        num_pieces=-(-len(starts) // ROWS_PER_PIECE) if width else 0,
        num_threads=threads_allowed(),
    )
    return out


def _read_only(given: Any) -> Any:
    """A view that cannot be written, as workers of an engine get it: compiled once for both."""
    if not isinstance(given, np.ndarray):
        return given
    view = given.view()
    view.setflags(write=False)
    return view
