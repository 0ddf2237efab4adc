"""From global node numbers to places in the subgraph, in an order that no thread can change.

    nodes = roots as given, then the nodes first reached by hop 1, ascending, then by hop 2, ...

Every thread sets bits of drawn nodes in a bitmap of its own; the union of the bitmaps less the
nodes known before is the set of new nodes, whoever set which bit. Reading the bits in order numbers
them. Ascending numbers also make the caller's gather of feature rows run forward through memory.

A bitmap is num_nodes / 8 bytes (products: 306 KB) and stays in cache, where a hash table or a stamp
for each node would not.
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from vesper.graph.draws import LAST_BIT, ONE, SIX
from vesper.graph.graph import Neighbors
from vesper.graph.intrinsics import count_ones, trailing_zeros


@njit(cache=True, nogil=True)
def place_roots(
    roots: NDArray[np.int64], seen: NDArray[np.uint64], places: NDArray[np.int32]
) -> int:
    """Mark and number the roots; return how many of them repeat an earlier one."""
    repeats = 0
    for k in range(len(roots)):
        root = np.uint64(roots[k])
        bit = ONE << (root & LAST_BIT)
        if seen[root >> SIX] & bit:
            repeats += 1
        seen[root >> SIX] |= bit
        places[root] = k
    return repeats


@njit(cache=True, nogil=True)
def find_new(
    marks: NDArray[np.uint64], seen: NDArray[np.uint64], counts: NDArray[np.int64]
) -> None:
    """Leave in marks[0] the bits of new nodes, add them to seen, and clear the other marks.

    Args:
        marks: (num_parts, num_words) bits set by `draw_rows`.
        seen: (num_words,) nodes that have a place already.
        counts: (num_parts + 1,) gets how many new nodes lie before each part of the words.
    """
    num_parts, num_words = marks.shape
    counts[0] = 0
    for part in range(num_parts):
        count = np.uint64(0)
        for word in range(num_words * part // num_parts, num_words * (part + 1) // num_parts):
            new = marks[0, word]
            for other in range(1, num_parts):
                new |= marks[other, word]
                marks[other, word] = 0
            new &= ~seen[word]
            seen[word] |= new
            marks[0, word] = new
            count += count_ones(new)
        counts[part + 1] = counts[part] + np.int64(count)


@njit(cache=True, nogil=True)
def place_new(
    new: NDArray[np.uint64],
    first: int,
    last: int,
    place: int,
    nodes: NDArray[np.int64],
    places: NDArray[np.int32],
) -> None:
    """Number the set bits of words first .. last - 1 from `place` on, ascending, and clear them."""
    at = np.uint64(place)
    for word in range(np.uint64(first), np.uint64(last)):
        bits = new[word]
        new[word] = 0
        while bits:
            node = (word << SIX) + trailing_zeros(bits)
            nodes[at] = node
            places[node] = at
            at += ONE
            bits &= bits - ONE


@njit(cache=True, nogil=True)
def look_up(
    drawn: Neighbors, first: int, last: int, places: NDArray[np.int32], indices: NDArray[np.int32]
) -> None:
    """indices[k] = places[drawn[k]] for k = first .. last - 1."""
    for at in range(np.uint64(first), np.uint64(last)):
        indices[at] = places[np.uint64(drawn[at])]


@njit(cache=True, parallel=True)
def place_and_look_up_in_parts(
    marks: NDArray[np.uint64],
    counts: NDArray[np.int64],
    num_placed: int,
    nodes: NDArray[np.int64],
    places: NDArray[np.int32],
    drawn: Neighbors,
    indices: NDArray[np.int32],
) -> None:
    """`place_new`, then `look_up`, on several threads."""
    num_parts, num_words = marks.shape
    for part in prange(num_parts):
        first, last = num_words * part // num_parts, num_words * (part + 1) // num_parts
        place_new(marks[0], first, last, num_placed + counts[part], nodes, places)
    for part in prange(num_parts):
        first, last = len(drawn) * part // num_parts, len(drawn) * (part + 1) // num_parts
        look_up(drawn, first, last, places, indices)
