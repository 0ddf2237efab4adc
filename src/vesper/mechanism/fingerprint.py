"""The name of a graph in the ledger: a keyed digest of its edges that never leaves.

Without the key, the label party cannot check a guess of the graph against it.
"""

import hashlib

from vesper.graph.graph import Graph


def fingerprint(graph: Graph, *, key: bytes) -> str:
    """Digest node count and edges under the ledger's key."""
    digest = hashlib.blake2b(key=key, digest_size=16)
    digest.update(graph.num_nodes.to_bytes(8, "little"))
    digest.update(graph.indptr.data.cast("B"))
    digest.update(graph.neighbors.data.cast("B"))
    return digest.hexdigest()
