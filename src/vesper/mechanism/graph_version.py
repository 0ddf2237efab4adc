"""What a ledger records of a version of a graph: keyed digests, and a sketch of its edges.

Two sketches show how many edges two graphs share:

    node v     h(v) = SipHash-2-4 of its id as text, under a key
    edge       e = mix(smaller h, larger h)          bin = e mod 256
    sketch     for each bin, a keyed digest of its smallest e        (one-permutation MinHash)

Ids count as text, so two tables of different days, in any order, can be compared. Without the key
nobody can compute the bin of an edge. The sketch is stored in the ledger, for its owner only, who
is warned if two names have nearly the same edges (`privacy.ledger.overlap`).
"""

import hashlib
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors
from vesper.graph.ids import Ids
from vesper.mechanism.fingerprint import fingerprint
from vesper.parallel.compile_cache import cached_njit
from vesper.privacy.ledger.overlap import EMPTY_SLOT, SLOT_DIGITS, GraphVersion

BINS = 256
NO_EDGE = np.uint64(2**64 - 1)


_known: WeakKeyDictionary[Graph, dict[bytes, GraphVersion]] = WeakKeyDictionary()


def version_of_graph(graph: Graph, *, key: bytes) -> GraphVersion:
    """Describe a graph under the ledger's key; cached while the graph is in memory."""
    versions = _known.setdefault(graph, {})
    if key not in versions:
        offsets, content = _texts_of(graph.ids or Ids(pa.array(np.arange(graph.num_nodes))))
        ids = hashlib.blake2b(key=key, digest_size=16, person=b"node ids")
        ids.update(np.ascontiguousarray(offsets).data)
        ids.update(np.ascontiguousarray(content).data)
        words = hashlib.blake2b(key=key, digest_size=16, person=b"edge sketch").digest()
        k0, k1 = np.frombuffer(words, dtype="<u8")
        hashes = _hash_texts(offsets, content, k0, k1)  # (num_nodes,)
        smallest = _smallest_in_bins(graph.indptr, graph.neighbors, hashes)  # (BINS,)
        versions[key] = GraphVersion(
            num_nodes=graph.num_nodes,
            ids=ids.hexdigest(),
            edges=fingerprint(graph, key=key),
            sketch="".join(_slot(key, value) for value in smallest),
        )
    return versions[key]


def _texts_of(ids: Ids) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return offsets (num_nodes + 1,) from 0 and bytes of the ids as UTF-8 text, and no others."""
    texts = ids.values.cast(pa.large_string())
    _, offsets, content = texts.buffers()
    assert offsets is not None, "a column of texts has offsets"
    starts = np.frombuffer(memoryview(offsets), dtype=np.int64)
    own = starts[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(own[0]), int(own[-1])  # a slice shares the buffers of its whole column
    used = np.frombuffer(memoryview(content) if content else b"", dtype=np.uint8)[first:last]
    return own - first, used


def _slot(key: bytes, value: np.uint64) -> str:
    if value == NO_EDGE:
        return EMPTY_SLOT
    size = SLOT_DIGITS // 2
    digest = hashlib.blake2b(value.tobytes(), key=key, digest_size=size, person=b"edge slot")
    return digest.hexdigest()


@cached_njit
def _hash_texts(
    offsets: NDArray[np.int64], content: NDArray[np.uint8], k0: np.uint64, k1: np.uint64
) -> NDArray[np.uint64]:
    """SipHash-2-4 of each text (Aumasson and Bernstein 2012)."""
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        a = k0 ^ np.uint64(0x736F6D6570736575)
        b = k1 ^ np.uint64(0x646F72616E646F6D)
        c = k0 ^ np.uint64(0x6C7967656E657261)
        d = k1 ^ np.uint64(0x7465646279746573)
        num_words = (stop - start) // 8 + 1
        for k in range(num_words + 1):  # the last round is the finalisation
            word = np.uint64(0)
            if k < num_words:
                first = start + 8 * k
                for j in range(min(8, stop - first)):
                    word |= np.uint64(content[first + j]) << np.uint64(8 * j)
                if k == num_words - 1:
                    word |= np.uint64((stop - start) & 0xFF) << np.uint64(56)
                d ^= word
            else:
                c ^= np.uint64(0xFF)
            for _ in range(2 if k < num_words else 4):
                a += b
                b = ((b << np.uint64(13)) | (b >> np.uint64(51))) ^ a
                a = (a << np.uint64(32)) | (a >> np.uint64(32))
                c += d
                d = ((d << np.uint64(16)) | (d >> np.uint64(48))) ^ c
                a += d
                d = ((d << np.uint64(21)) | (d >> np.uint64(43))) ^ a
                c += b
                b = ((b << np.uint64(17)) | (b >> np.uint64(47))) ^ c
                c = (c << np.uint64(32)) | (c >> np.uint64(32))
            a ^= word
        hashes[row] = a ^ b ^ c ^ d
    return hashes


@cached_njit
def _smallest_in_bins(
    indptr: NDArray[np.int64], neighbors: Neighbors, hashes: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Smallest mixed hash of an edge in each bin; `NO_EDGE` where there is none."""
    smallest = np.full(BINS, NO_EDGE, dtype=np.uint64)
    for u in range(len(indptr) - 1):
        for k in range(indptr[u], indptr[u + 1]):
            v = neighbors[k]
            if u < v:
                low, high = min(hashes[u], hashes[v]), max(hashes[u], hashes[v])
                x = low * np.uint64(0x9E3779B97F4A7C15) + high
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                x ^= x >> np.uint64(31)
                place = x & np.uint64(BINS - 1)
                if x < smallest[place]:
                    smallest[place] = x
    return smallest
