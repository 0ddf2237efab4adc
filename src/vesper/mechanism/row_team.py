"""Rows shared out over the threads of this process.

A row is written by one thread from a row of the graph, messages and tables alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.graph import team
from vesper.graph.graph import Neighbors
from vesper.graph.threads import threads_allowed

ROWS = 1024
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
    team.run(
        kernel,
        starts,
        stops,
        neighbors,
        out,
        *(_as_sent(each) for each in read),
        num_pieces=-(-len(starts) // ROWS) if width else 0,
        num_threads=threads_allowed(),
    )
    return out


def _as_sent(given: Any) -> Any:
    """A view that cannot be written, as workers of an engine get it: compiled once for both."""
    if not isinstance(given, np.ndarray):
        return given
    view = given.view()
    view.setflags(write=False)
    return view
