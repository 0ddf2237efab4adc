"""Aggregations row by row, so that rows may be made anywhere, by who has them.

    row v  =  function(neighbours of v, messages, tables of all nodes, what is v's own)

What a table says of a node may come from edges (the degrees of `GridGcn` do); it is the same for
all rows, and in both of two graphs only as far as the claim of the aggregation says.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.cache_lines import whole_rows
from vesper.mechanism.grid import Messages, refuse_long

LARGEST_DEGREE = 1 << 24
"""So many messages of size 64 may still be added in 32 bits, noise included."""

LARGEST_GRAPH = LARGEST_DEGREE
"""Up to here no degree can be too large, and none is looked at."""

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class RowMaker:
    """How rows are made by who has only these rows of a graph.

    Args:
        function: at the top level of its module; takes where rows start and stop, neighbors, the
            width, messages by `whole_rows`, and then the following.
        tables: of all nodes, for what a row reads of its senders.
        own: of all nodes, for what a row reads of its receiver.
        numbers: the same for all.
    """

    function: Callable[..., NDArray[np.int32]]
    tables: tuple[NDArray[Any], ...] = ()
    own: tuple[NDArray[Any], ...] = ()
    numbers: tuple[int, ...] = ()


class RowByRow(ABC):
    """Aggregations whose rows are made one by one: all that there are."""

    @abstractmethod
    def row_maker(self, graph: Graph, messages: Messages) -> RowMaker:
        """Say how rows of its output are made from rows of the graph."""

    def aggregate(
        self, graph: Graph, messages: Messages, receivers: Nodes | None
    ) -> NDArray[np.int32]:
        """Make all rows asked for, here."""
        refuse_inexact(graph, messages)
        maker, indptr = self.row_maker(graph, messages), np.asarray(graph.indptr)
        starts, stops, own = indptr[:-1], indptr[1:], maker.own
        if receivers is not None:
            starts, stops = starts[receivers], stops[receivers]
            own = tuple(each[receivers] for each in own)
        return maker.function(
            starts,
            stops,
            np.asarray(graph.neighbors),
            messages.shape[1],
            whole_rows(messages),
            *maker.tables,
            *own,
            *maker.numbers,
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
