"""The loops behind `attention.py`, `maximum.py` and `clamped_gcn.py`: integers throughout.

Compiled by Numba on first use.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors
from vesper.mechanism.aggregations.aggregation import ROWS_PER_PIECE, Ints, run_rows
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

SCORE_BITS = 12
"""Scores are integer multiples of 2^-12: key times query, 64 steps each, is at most 64^2."""

LARGEST = 1 << 30
"""Weighted sums are cut off here, so that the sum plus noise fits 32 bits."""

GridRows = NDArray[np.int8]


def attention_of_rows(
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    width: int,
    messages: GridRows,
    keys: GridRows,
    queries: GridRows,
) -> NDArray[np.int32]:
    """Sum messages, weighted by how well their keys match the query of each receiver."""
    return run_rows(_attend, starts, stops, neighbors, width, messages, keys, queries)


def largest_of_rows(
    starts: Ints, stops: Ints, neighbors: Neighbors, width: int, messages: GridRows
) -> NDArray[np.int32]:
    """Find the largest value of each coordinate, at least 0."""
    return run_rows(_find_largest, starts, stops, neighbors, width, messages)


def weighed_rows(
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    width: int,
    messages: GridRows,
    weights: Ints,
    own_weights: Ints,
    divisor: int,
) -> NDArray[np.int32]:
    """Sum messages, weighted by sender and by receiver."""
    return run_rows(
        _weigh, starts, stops, neighbors, width, messages, weights, own_weights, divisor
    )


@cached_njit
def _attend(
    work: Work,
    thread: int,
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    out: NDArray[np.int32],
    messages: GridRows,
    keys: GridRows,
    queries: GridRows,
) -> None:
    """Add each message times the match of key and query; every entry rounded towards zero."""
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(starts))):
            for at in range(starts[k], stops[k]):
                u = neighbors[at]
                score = np.int64(0)
                for i in range(keys.shape[1]):
                    score += np.int64(keys[u, i]) * np.int64(queries[k, i])
                if score > 0:
                    for c in range(out.shape[1]):
                        entry = np.int64(messages[u, c])
                        weighted = (score * abs(entry)) >> SCORE_BITS
                        out[k, c] += weighted if entry > 0 else -weighted
        finish(work)
        piece = take(work)


@cached_njit
def _find_largest(
    work: Work,
    thread: int,
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    out: NDArray[np.int32],
    messages: GridRows,
) -> None:
    """Write the largest value of each coordinate; `out` starts at 0."""
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(starts))):
            for at in range(starts[k], stops[k]):
                u = neighbors[at]
                for c in range(out.shape[1]):
                    out[k, c] = max(out[k, c], np.int32(messages[u, c]))
        finish(work)
        piece = take(work)


@cached_njit
def _weigh(
    work: Work,
    thread: int,
    starts: Ints,
    stops: Ints,
    neighbors: Neighbors,
    out: NDArray[np.int32],
    messages: GridRows,
    weights: Ints,
    own_weights: Ints,
    divisor: int,
) -> None:
    """Write round(weight_v sum of weight_u message_u / divisor), cut off at `LARGEST`."""
    total = np.zeros(out.shape[1], dtype=np.int64)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(starts))):
            total[:] = 0
            for at in range(starts[k], stops[k]):
                u = neighbors[at]
                for c in range(out.shape[1]):
                    total[c] += weights[u] * np.int64(messages[u, c])
            for c in range(out.shape[1]):
                nearest = (2 * own_weights[k] * total[c] + divisor) // (2 * divisor)
                out[k, c] = min(max(nearest, -LARGEST), LARGEST)
        finish(work)
        piece = take(work)
