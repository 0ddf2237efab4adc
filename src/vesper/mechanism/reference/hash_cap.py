"""Fewer messages per node by a public hash (claim S-HASH-CAP), and why not the D smallest.

    HashCap:         aggregated[v] = sum of message[u] over u in N(v) with H(u, v) < threshold[v]
    SmallestHashes:  aggregated[v] = sum of message[u] over the max_degree neighbours u of v with
                                     the smallest H(u, v)

Under a threshold, each neighbour is kept or dropped independently of the others. Under a fixed
number, a neighbour that is removed makes way for another, and the row moves by both. The certified
plan needs neither.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import Floats, LinearAggregation, receivers_of
from vesper.privacy.accounting.safe_numbers import expect, expect_count


class HashCap(LinearAggregation):
    """Sum over neighbours whose hash is below the receiver's threshold.

    Claim: S-HASH-CAP. One edge moves the output by at most sqrt 2.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): thresholds and salt do not depend on edges other than through
        charged releases; rows of norm at most 1, edge-free.
    Moves: two rows at most, those of the endpoints that keep the other.
    Tight: yes, thresholds of 1.
    Proof: docs/claims/S-HASH-CAP.md.

    Args:
        thresholds: (num_nodes,) in [0, 1], the share of its neighbours that a node keeps.
        salt: public, from 0 to 2^63 - 1.

    Raises:
        InputError: a threshold outside [0, 1], not one per node, or a salt outside its range.
    """

    def __init__(self, thresholds: Floats, *, salt: int) -> None:
        if thresholds.ndim != 1 or not ((thresholds >= 0) & (thresholds <= 1)).all():
            raise InputError("thresholds: expected one number from 0 to 1 per node")
        self.thresholds, self.salt = thresholds, _checked(salt)

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Self weights of 0; edge weights of 1 for kept neighbours, else 0."""
        if len(self.thresholds) != graph.num_nodes:
            raise InputError(
                f"thresholds: expected {graph.num_nodes}, one per node, got {len(self.thresholds)}"
            )
        receivers = receivers_of(graph)
        hashes = pair_hash(graph.neighbors.astype(np.int64), receivers, salt=self.salt)
        return np.zeros(graph.num_nodes), (hashes < self.thresholds[receivers]).astype(np.float64)

    def edge_sensitivity(self) -> float:
        """Return sqrt 2."""
        return math.sqrt(2)


class SmallestHashes(LinearAggregation):
    """Sum over the `max_degree` neighbours with the smallest hashes.

    Claim: S-HASH-CAP (counted). One edge moves the output by at most 2 sqrt 2.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): salt public; rows of norm at most 1, edge-free.
    Moves: two rows at most, those of the endpoints that keep the other.
    Tight: yes, a path on four nodes with `max_degree` 1: both inner nodes swap.
    Proof: docs/claims/S-HASH-CAP.md.

    Raises:
        InputError: `max_degree` is below 1, or a salt outside [0, 2^63).
    """

    def __init__(self, *, max_degree: int, salt: int) -> None:
        expect_count("max_degree", max_degree, at_least=1)
        self.max_degree, self.salt = max_degree, _checked(salt)

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Self weights of 0; edge weights of 1 for kept neighbours, else 0."""
        receivers = receivers_of(graph)
        hashes = pair_hash(graph.neighbors.astype(np.int64), receivers, salt=self.salt)
        order = np.lexsort((hashes, receivers))  # by row, then by hash
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - graph.indptr[receivers]
        return np.zeros(graph.num_nodes), (rank < self.max_degree).astype(np.float64)

    def edge_sensitivity(self) -> float:
        """Return 2 sqrt 2."""
        return math.sqrt(8)


def pair_hash(
    senders: NDArray[np.int64], receivers: NDArray[np.int64], *, salt: int
) -> NDArray[np.float64]:
    """H(u, v) in [0, 1), elementwise: two rounds of splitmix64 over salt, receiver and sender.

    >>> pair_hash(np.array([1, 2]), np.array([2, 1]), salt=0).round(6).tolist()
    [0.876676, 0.737699]
    """
    mixed = _mix(np.full(np.shape(receivers), salt, dtype=np.uint64) + receivers.astype(np.uint64))
    mixed = _mix(mixed + senders.astype(np.uint64))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _checked(salt: int) -> int:
    expect(
        0 <= salt < 1 << 63,
        name="salt",
        wanted="0 <= salt < 2^63",
        got=salt,
        remedy="use a public integer",
    )
    return salt


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finalise as splitmix64 does: a permutation of 64-bit words."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
