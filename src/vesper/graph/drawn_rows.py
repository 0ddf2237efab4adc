"""Rows of a sample from a part of the graph: what one who has only that part can draw."""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.expand import ROWS_A_PIECE, draw_rows, measure_rows
from vesper.graph.graph import Neighbors
from vesper.graph.team import run


def drawn_rows(
    graph_indptr: NDArray[np.int64],
    neighbors: Neighbors,
    first: int,
    receivers: NDArray[np.int64],
    *,
    max_degree: int,
    key: np.uint64,
    num_nodes: int,
) -> tuple[NDArray[np.int64], Neighbors]:
    """Draw rows of a part of a graph, as a `Sampler` of the whole would draw them.

    Args:
        graph_indptr: where each row of the part starts in `neighbors`.
        neighbors: of the part.
        first: the node that the first row of the part is of.
        receivers: nodes of the part.
        max_degree: most neighbours of a row.
        key: of the hop.
        num_nodes: of the whole graph.

    Returns:
        indptr of the sample, and the drawn node numbers.
    """
    starts, degrees = np.empty_like(receivers), np.empty_like(receivers)  # (num_receivers,)
    indptr = np.empty(len(receivers) + 1, dtype=np.int64)
    longest = measure_rows(graph_indptr, receivers - first, max_degree, starts, degrees, indptr)
    drawn = np.empty(int(indptr[-1]), dtype=neighbors.dtype)
    run(
        draw_rows,
        neighbors,
        receivers,
        starts,
        degrees,
        indptr,
        key,
        drawn,
        np.zeros((1, longest // 64 + 1), dtype=np.uint64),
        np.zeros((1, (num_nodes + 63) // 64), dtype=np.uint64),
        num_pieces=-(-len(receivers) // ROWS_A_PIECE),
        num_threads=1,
    )
    return indptr, drawn
