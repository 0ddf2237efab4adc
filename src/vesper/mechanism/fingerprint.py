"""The name of a graph in the ledger: a keyed digest of its edges that never leaves.

Without the key, the label party cannot check a guess of the graph against it. The name depends on
the edges alone, not on how they are held: numbers are hashed little-endian, row starts in eight
bytes and neighbours in as many as the node count asks for.
"""

import hashlib

import numpy as np

from vesper.graph.graph import Graph, neighbor_dtype

CHUNK = 1 << 22
"""Neighbours converted at a time, where they must be."""


def fingerprint(graph: Graph, *, key: bytes) -> str:
    """Digest node count and edges under the ledger's key."""
    digest = hashlib.blake2b(key=key, digest_size=16)
    digest.update(graph.num_nodes.to_bytes(8, "little"))
    width = np.dtype(neighbor_dtype(graph.num_nodes)).newbyteorder("<")
    for numbers, dtype in ((graph.indptr, np.dtype("<i8")), (graph.neighbors, width)):
        for start in range(0, len(numbers), CHUNK):
            chunk = numbers[start : start + CHUNK].astype(dtype, copy=False)
            digest.update(np.ascontiguousarray(chunk).data.cast("B"))
    return digest.hexdigest()
