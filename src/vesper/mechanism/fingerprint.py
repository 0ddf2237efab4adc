"""Fingerprint: a keyed digest of a graph's edges, for its owner only.

    digest of  num_nodes,  row starts,  neighbours        nodes in the order of their ids as text

It tells the owner whether two versions have the same edges. No account, name or decision that a
peer could observe depends on it (claim NON-INTERFERENCE), and without the key nobody can check a
guess of the graph against it. It depends on ids and edges alone, not on how they are stored:
integer ids count as their decimal text, numbers are hashed little-endian, row starts in eight bytes
and neighbours in as many bytes as the node count requires. Nodes without ids are identified by
their numbers.

This module also checks, before a charged door opens, that a graph is one that R-SUM covers:

    every row strictly ascending, in range, without its own node
    sum over u < v in row u of mix(u, v)  =  sum over u > v in row u of mix(v, u)   (mod 2^64)

`mix` is keyed with fresh random bits, so asymmetric arrays pass with probability about 2^-64. A
repeated or one-way neighbour would move a row by more than the claim states, or move another row.
The check is one pass over the neighbours.
"""

import hashlib
import secrets
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph, Neighbors, neighbor_dtype
from vesper.graph.ids import Ids
from vesper.parallel.compile_cache import cached_njit

CHUNK = 1 << 22
"""Neighbours hashed at a time."""


_known: WeakKeyDictionary[Graph, dict[bytes, str]] = WeakKeyDictionary()


def fingerprint(graph: Graph, *, key: bytes) -> str:
    """Digest node count and edges under the ledger's key; cached while the graph is in memory."""
    names = _known.setdefault(graph, {})
    if key not in names:
        names[key] = _digest(graph, key)
    return names[key]


def _digest(graph: Graph, key: bytes) -> str:
    digest = hashlib.blake2b(key=key, digest_size=16)
    digest.update(graph.num_nodes.to_bytes(8, "little"))
    width = np.dtype(neighbor_dtype(graph.num_nodes)).newbyteorder("<")
    ids = graph.ids or Ids(pa.array(np.arange(graph.num_nodes)))
    order = ids.order_as_text()
    indptr = graph.indptr if order is None else _starts(graph, order)
    blocks = _chunks(graph.neighbors) if order is None else _reordered(graph, order)
    for numbers, dtype in ((_chunks(indptr), np.dtype("<i8")), (blocks, width)):
        for chunk in numbers:
            digest.update(np.ascontiguousarray(chunk.astype(dtype, copy=False)).data.cast("B"))
    return digest.hexdigest()


def _chunks(numbers: NDArray[np.int64] | Neighbors) -> Iterator[NDArray[np.int64] | Neighbors]:
    for start in range(0, len(numbers), CHUNK):
        yield numbers[start : start + CHUNK]


def _starts(graph: Graph, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row starts of the graph with its nodes in this order."""
    starts = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    np.cumsum(np.diff(graph.indptr)[order], out=starts[1:])
    return starts


def _reordered(graph: Graph, order: NDArray[np.int64]) -> Iterator[Neighbors]:
    """Yield the neighbours of the graph with its nodes in this order, some rows at a time."""
    places = np.empty(graph.num_nodes, dtype=graph.neighbors.dtype)
    places[order] = np.arange(graph.num_nodes)
    starts, first = _starts(graph, order), 0
    while first < graph.num_nodes:
        last = int(np.searchsorted(starts, starts[first] + CHUNK, side="right")) - 1
        rows = order[first : max(last, first + 1)]
        rows_end = first + len(rows)
        block = np.empty(starts[rows_end] - starts[first], dtype=graph.neighbors.dtype)
        _renumber(graph.indptr, graph.neighbors, places, rows, block)
        yield block
        first = rows_end


@cached_njit
def _renumber(
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    places: Neighbors,
    rows: NDArray[np.int64],
    block: Neighbors,
) -> None:
    """Write the new positions of these rows' neighbours, ascending within each row."""
    at = 0
    for row in rows:
        begin = at
        for k in range(indptr[row], indptr[row + 1]):
            block[at] = places[neighbors[k]]
            at += 1
        block[begin:at].sort()


def refuse_directed(graph: Graph) -> None:
    """Refuse arrays that are not an undirected graph without repeated edges and self-loops."""
    indptr, neighbors = graph.indptr, graph.neighbors
    if (
        indptr[0] != 0
        or indptr[-1] != len(neighbors)
        or bool((np.diff(indptr) < 0).any())
        or (len(neighbors) and not 0 <= neighbors.min() <= neighbors.max() < graph.num_nodes)
    ):
        raise InputError("Expected a graph in CSR form, got row starts or neighbours out of range.")
    bad, balance = _scan(
        np.ascontiguousarray(indptr),
        np.ascontiguousarray(neighbors),
        np.uint64(secrets.randbits(64)),
    )
    if bad >= 0 or balance != 0:
        problem = (
            "one-way edges"
            if bad < 0
            else f"row {bad} with a self-loop, a repeated neighbour or unsorted neighbours"
        )
        raise InputError(
            f"Expected an undirected graph without repeated edges or self-loops, got {problem}."
        )


@cached_njit
def _scan(indptr: NDArray[np.int64], neighbors: Neighbors, key: np.uint64) -> tuple[int, np.uint64]:
    """Return the first bad row, or -1, and the balance of both directions: 0 if symmetric."""
    balance = np.uint64(0)
    for u in range(len(indptr) - 1):
        before = -1
        for k in range(indptr[u], indptr[u + 1]):
            v = neighbors[k]
            if v <= before or v == u:
                return u, balance
            before = v
            mixed = _mix(_mix(np.uint64(min(u, v)) ^ key) + np.uint64(max(u, v)))
            balance = balance + mixed if u < v else balance - mixed
    return -1, balance


@cached_njit
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
