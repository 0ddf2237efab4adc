"""One hop of sampling: the sampled rows of the nodes reached so far, in global node numbers.

Two passes over the rows. `measure_rows` reads where each row starts, which fixes where its draws
go; `draw_rows` fills them, any piece on any thread. Both are bound by random memory reads, so both
prefetch what they will need some rows ahead.

Indices are unsigned throughout: Numba checks signed indices for negative values at every access.

Which neighbours are drawn is a function of (seed, step, hop, node) and of nothing else.

    key      = absorb(absorb(absorb(0, seed), step), hop)     one per hop
    word i   = mix(absorb(key, node) + i * GAMMA),  i >= 1    SplitMix64 (Steele et al. 2014)
    position = floor(r * n / 2^32), r the upper half of the next word; redrawn if r * n mod 2^32
               < 2^32 mod n, which leaves every position exactly 2^32 // n values of r
               (Lemire 2019): no bias

A counter replaces a generator state passed from row to row, so a row is drawn the same way
whichever thread draws it and whatever was drawn before. Good for sampling but not secret: no
privacy claim may rest on these draws.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.intrinsics import prefetch
from vesper.parallel.pool import Work, finish, take

GAMMA = np.uint64(0x9E3779B97F4A7C15)
LOWER_HALF = np.uint64(0xFFFFFFFF)

ONE, HALF = np.uint64(1), np.uint64(32)
BITS_A_WORD, SIX, LAST_BIT = np.uint64(64), np.uint64(6), np.uint64(63)
"""Bit b of a bitmap is bit (b & LAST_BIT) of word (b >> SIX)."""


@cached_njit
def mix(word: np.uint64) -> np.uint64:
    """Scatter the bits of a word; one-to-one."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@cached_njit
def absorb(key: np.uint64, word: np.uint64) -> np.uint64:
    """Combine `key` and `word` into a new key; one-to-one in each."""
    return mix((key ^ word) + GAMMA)


def hop_key(seed: int, step: int, hop: int) -> np.uint64:
    """Return the key that all draws of one hop of one step share."""
    key = np.uint64(0)
    for word in (seed, step, hop):
        key = np.uint64(absorb(key, np.uint64(word)))
    return key


@cached_njit
def below(counter: np.uint64, bound: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the advanced counter and a uniform number below bound; 1 <= bound < 2^32."""
    counter += GAMMA
    product = (mix(counter) >> HALF) * bound
    if product & LOWER_HALF < bound:  # rare: only then may a redraw be necessary
        refused = (LOWER_HALF - bound + ONE) % bound  # 2^32 mod bound
        while product & LOWER_HALF < refused:
            counter += GAMMA
            product = (mix(counter) >> HALF) * bound
    return counter, product >> HALF


@cached_njit
def draw_positions(
    neighbors: Neighbors,
    start: np.uint64,
    degree: np.uint64,
    counter: np.uint64,
    taken: NDArray[np.uint64],
    samples: Neighbors,
    first: np.uint64,
    last: np.uint64,
) -> None:
    """Fill samples[first:last] with distinct positions below degree; prefetch their targets.

    Floyd's algorithm: for top = degree - count .. degree - 1 draw t from 0 .. top and take t, or
    top if t is taken. Every set of `count` positions is equally likely.

    Args:
        neighbors: all rows; position p of this row is neighbors[start + p].
        start: where the row starts.
        degree: length of the row, more than last - first.
        counter: absorb(key, node).
        taken: at least degree bits, all 0 before and after.
        samples: receives the positions.
        first: first entry to fill.
        last: end of the entries to fill.
    """
    if degree <= BITS_A_WORD:
        _draw_from_short_row(neighbors, start, degree, counter, samples, first, last)
        return
    top = degree - (last - first)
    for at in range(first, last):
        counter, position = below(counter, top + ONE)
        word, bit = position >> SIX, position & LAST_BIT
        if (taken[word] >> bit) & ONE:
            position, word, bit = top, top >> SIX, top & LAST_BIT
        taken[word] |= ONE << bit
        samples[at] = position
        prefetch(neighbors, np.int64(start + position))
        top += ONE
    for at in range(first, last):
        taken[np.uint64(samples[at]) >> SIX] = 0


@cached_njit
def _draw_from_short_row(
    neighbors: Neighbors,
    start: np.uint64,
    degree: np.uint64,
    counter: np.uint64,
    samples: Neighbors,
    first: np.uint64,
    last: np.uint64,
) -> None:
    """Do the same with `taken` in one register word: measured 13 to 26 % faster."""
    taken = np.uint64(0)
    top = degree - (last - first)
    for at in range(first, last):
        counter, position = below(counter, top + ONE)
        # Short rows collide often and at random, so this is a select instead of a branch.
        position = top if (taken >> position) & ONE else position
        taken |= ONE << position
        samples[at] = position
        prefetch(neighbors, np.int64(start + position))
        top += ONE


ROWS_AHEAD = 16
"""Rows drawn before the neighbours of the first are read: more reads than a core has in flight."""

ROWS_A_PIECE = 512
"""Rows that a thread takes at a time: about 0.1 ms of work."""


@cached_njit
def measure_rows(
    graph_indptr: NDArray[np.int64],
    nodes: NDArray[np.int64],
    max_degree: int,
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    indptr: NDArray[np.int64],
) -> int:
    """Fill start and degree of each row and the indptr of the sample; return the largest degree."""
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


@cached_njit
def draw_rows(
    work: Work,
    thread: int,
    neighbors: Neighbors,
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    indptr: NDArray[np.int64],
    key: np.uint64,
    samples: Neighbors,
    taken: NDArray[np.uint64],
    marks: NDArray[np.uint64],
) -> None:
    """Draw each row into samples[indptr[row] : indptr[row + 1]] and mark its nodes; for `pool.run`.

    Args:
        work: pieces of `ROWS_A_PIECE` rows.
        thread: number of this thread in the pool.
        neighbors: rows of the graph.
        nodes: (num_rows,) nodes whose rows to draw.
        starts: (num_rows,) from `measure_rows`, as are the next two.
        degrees: (num_rows,) full row lengths.
        indptr: (num_rows + 1,) where the draws of each row go.
        key: from `hop_key`.
        samples: (indptr[-1],) receives node numbers.
        taken: (num_threads, ..) zeroed scratch, one bit per position of the longest row.
        marks: (num_threads, ..) one bit per node of the graph; each thread sets those it drew.
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
            samples,
            taken[thread],
            marks[thread],
        )
        finish(work)
        piece = take(work)


@cached_njit
def _draw_piece(
    neighbors: Neighbors,
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    indptr: NDArray[np.int64],
    key: np.uint64,
    first: int,
    last: int,
    samples: Neighbors,
    taken: NDArray[np.uint64],
    marks: NDArray[np.uint64],
) -> None:
    """Draw rows first .. last - 1: draw positions of one block, then read nodes of the previous."""
    for block in range(first, last + ROWS_AHEAD, ROWS_AHEAD):
        for row in range(np.uint64(block), np.uint64(min(block + ROWS_AHEAD, last))):
            start, degree = np.uint64(starts[row]), np.uint64(degrees[row])
            begin, end = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
            if end - begin < degree:
                counter = absorb(key, np.uint64(nodes[row]))
                draw_positions(neighbors, start, degree, counter, taken, samples, begin, end)
            else:
                prefetch(neighbors, np.int64(start))
                for at in range(begin, end):
                    samples[at] = at - begin
        # The prefetched neighbours of the previous block have arrived.
        for row in range(np.uint64(max(block - ROWS_AHEAD, first)), np.uint64(min(block, last))):
            start = np.uint64(starts[row])
            for at in range(np.uint64(indptr[row]), np.uint64(indptr[row + ONE])):
                neighbor = np.uint64(neighbors[start + np.uint64(samples[at])])
                samples[at] = neighbor
                marks[neighbor >> SIX] |= ONE << (neighbor & LAST_BIT)
