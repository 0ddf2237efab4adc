"""One hop outwards: the sampled rows of the nodes reached so far, in global node numbers.

Two passes over the rows. `measure_rows` reads where each row starts, which fixes where its draws
go; `draw_rows` fills them, any piece by any thread. Both are bound by random reads of memory, so
both ask for what they will need some rows ahead.

Indices are unsigned throughout: Numba tests signed ones for being negative, at every access.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.compiled import compiled
from vesper.graph.draws import LAST_BIT, ONE, SIX, absorb, draw_positions
from vesper.graph.graph import Neighbors
from vesper.graph.intrinsics import prefetch
from vesper.graph.team import Work, finish, take

ROWS_AHEAD = 16
"""Rows drawn before the neighbours of the first are read: more than a core can have in flight."""

ROWS_A_PIECE = 512
"""Rows that a thread takes at a time: a tenth of a millisecond of work."""


@compiled
def measure_rows(
    graph_indptr: NDArray[np.int64],
    nodes: NDArray[np.int64],
    max_degree: int,
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    indptr: NDArray[np.int64],
) -> int:
    """Fill start and degree of each node's row and the indptr of the sample; return the longest."""
    longest = 0
    indptr[0] = 0
    for row in range(len(nodes)):
        prefetch(graph_indptr, nodes[min(row + ROWS_AHEAD, len(nodes) - 1)])
        node = np.uint64(nodes[row])
        starts[row] = graph_indptr[node]
        degrees[row] = graph_indptr[node + ONE] - graph_indptr[node]
        indptr[row + 1] = indptr[row] + min(degrees[row], max_degree)
        longest = max(longest, degrees[row])
    return longest


@compiled
def draw_rows(
    work: Work,
    seat: int,
    neighbors: Neighbors,
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    indptr: NDArray[np.int64],
    key: np.uint64,
    drawn: Neighbors,
    taken: NDArray[np.uint64],
    marks: NDArray[np.uint64],
) -> None:
    """Draw each row into drawn[indptr[row] : indptr[row + 1]] and mark the drawn; for `team.run`.

    Args:
        work: pieces of `ROWS_A_PIECE` rows.
        seat: of this thread in the team.
        neighbors: rows of the graph.
        nodes: (num_rows,) whose rows to draw.
        starts: (num_rows,) from `measure_rows`, as are the next two.
        degrees: (num_rows,) full row lengths.
        indptr: (num_rows + 1,) where the draws of each row go.
        key: seed, step and hop, absorbed.
        drawn: (indptr[-1],) gets node numbers.
        taken: (num_threads, ..) scratch, zero, a bit for each position of the longest row.
        marks: (num_threads, ..) a bit for each node of the graph; each thread sets those it drew.
    """
    piece = take(work)
    while piece >= 0:
        first = piece * ROWS_A_PIECE
        last = min(first + ROWS_A_PIECE, len(nodes))
        _draw_piece(
            neighbors,
            nodes,
            starts,
            degrees,
            indptr,
            key,
            first,
            last,
            drawn,
            taken[seat],
            marks[seat],
        )
        finish(work)
        piece = take(work)


@compiled
def _draw_piece(
    neighbors: Neighbors,
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    indptr: NDArray[np.int64],
    key: np.uint64,
    first: int,
    last: int,
    drawn: Neighbors,
    taken: NDArray[np.uint64],
    marks: NDArray[np.uint64],
) -> None:
    """Rows first .. last - 1: draw a block of rows, then read the block before."""
    for block in range(first, last + ROWS_AHEAD, ROWS_AHEAD):
        for row in range(np.uint64(block), np.uint64(min(block + ROWS_AHEAD, last))):
            start, degree = np.uint64(starts[row]), np.uint64(degrees[row])
            begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
            if end - begin < degree:
                counter = absorb(key, np.uint64(nodes[row]))
                draw_positions(neighbors, start, degree, counter, taken, drawn, begin, end)
            else:
                prefetch(neighbors, np.int64(start))
                for at in range(begin, end):
                    drawn[at] = at - begin
        # What the block before this one asked for has arrived.
        for row in range(np.uint64(max(block - ROWS_AHEAD, first)), np.uint64(min(block, last))):
            start = np.uint64(starts[row])
            for at in range(np.uint64(indptr[row]), np.uint64(indptr[row + ONE])):
                neighbor = np.uint64(neighbors[start + np.uint64(drawn[at])])
                drawn[at] = neighbor
                marks[neighbor >> SIX] |= ONE << (neighbor & LAST_BIT)
