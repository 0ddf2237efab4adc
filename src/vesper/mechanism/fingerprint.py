"""The name of a graph in the ledger: a keyed digest of its edges that never leaves.

    digest of  num_nodes,  row starts,  neighbours        nodes numbered by their ids as text

Without the key, the label party cannot check a guess of the graph against it. The name depends on
ids and edges alone, not on how they are held: whole numbers count as the text that a program would
write for them, numbers are hashed little-endian, row starts in eight bytes and neighbours in as
many as the node count asks for. Nodes without ids are called by their numbers.
"""

import hashlib
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.graph.compiled import compiled
from vesper.graph.graph import Graph, Neighbors, neighbor_dtype
from vesper.graph.ids import Ids

CHUNK = 1 << 22
"""Neighbours converted at a time, where they must be."""


_known: WeakKeyDictionary[Graph, dict[bytes, str]] = WeakKeyDictionary()


def fingerprint(graph: Graph, *, key: bytes) -> str:
    """Digest node count and edges under the ledger's key; once, as long as the graph is held."""
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
    """Row starts of the graph with its nodes in this order."""
    starts = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    np.cumsum(np.diff(graph.indptr)[order], out=starts[1:])
    return starts


def _reordered(graph: Graph, order: NDArray[np.int64]) -> Iterator[Neighbors]:
    """Neighbours of the graph with its nodes in this order, some rows at a time."""
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


@compiled
def _renumber(
    indptr: NDArray[np.int64],
    neighbors: Neighbors,
    places: Neighbors,
    rows: NDArray[np.int64],
    block: Neighbors,
) -> None:
    """Write the places of the neighbours of these rows, row after row, ascending within each."""
    at = 0
    for row in rows:
        begin = at
        for k in range(indptr[row], indptr[row + 1]):
            block[at] = places[neighbors[k]]
            at += 1
        block[begin:at].sort()
