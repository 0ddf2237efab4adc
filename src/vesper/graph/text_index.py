"""Hash table from text ids to positions, built once and looked up in batches.

Open addressing over the ids' own bytes: a slot holds a position, and a hit is checked byte by byte.
Arrow has the same join, but rebuilds its table for every batch.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.graph.table_source import Column
from vesper.parallel import pool
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take, threads_allowed

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]


ROWS = 8192
"""Texts per piece."""


class TextIndex:
    """Index from distinct texts to their positions."""

    def __init__(self, values: Column) -> None:
        self._offsets, self._bytes = _buffers(values)
        num_slots = 1 << (2 * max(len(values), 1) - 1).bit_length()
        self._slots = np.full(num_slots, -1, dtype=np.int64)
        _insert(self._offsets, self._bytes, self._slots)

    def positions(self, wanted: Column) -> NDArray[np.int64]:
        """Return the position of each wanted text, or -1 if it is unknown."""
        offsets, texts = _buffers(wanted)
        out = np.empty(len(wanted), dtype=np.int64)
        pool.run(
            _find,
            offsets,
            texts,
            self._offsets,
            self._bytes,
            self._slots,
            out,
            num_pieces=-(-len(out) // ROWS),
            num_threads=threads_allowed(),
        )
        return out


def _buffers(values: Column) -> tuple[Offsets, Bytes]:
    """Return where each text starts, and the bytes of all texts."""
    _, offsets, texts = values.cast(pa.large_string()).buffers()
    if offsets is None or len(values) == 0:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    starts = np.frombuffer(memoryview(offsets), dtype=np.int64)
    content = np.frombuffer(memoryview(texts) if texts else b"", dtype=np.uint8)
    return starts[values.offset : values.offset + len(values) + 1], content


@cached_njit
def _hash(texts: Bytes, start: int, stop: int) -> np.uint64:
    """Return the FNV-1a hash of a text, mixed once more at the end."""
    value = np.uint64(14695981039346656037)
    for k in range(start, stop):
        value = (value ^ np.uint64(texts[k])) * np.uint64(1099511628211)
    value ^= value >> np.uint64(32)
    return value


@cached_njit
def _equal(a: Bytes, a_start: int, a_stop: int, b: Bytes, b_start: int, b_stop: int) -> bool:
    if a_stop - a_start != b_stop - b_start:
        return False
    for k in range(a_stop - a_start):  # noqa: SIM110 (Numba compiles no generators)
        if a[a_start + k] != b[b_start + k]:
            return False
    return True


@cached_njit
def _insert(offsets: Offsets, texts: Bytes, slots: NDArray[np.int64]) -> None:
    mask = np.uint64(len(slots) - 1)
    for k in range(len(offsets) - 1):
        at = _hash(texts, offsets[k], offsets[k + 1]) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = k


@cached_njit
def _find(
    work: Work,
    thread: int,
    wanted_offsets: Offsets,
    wanted: Bytes,
    offsets: Offsets,
    texts: Bytes,
    slots: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    mask = np.uint64(len(slots) - 1)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS, min((piece + 1) * ROWS, len(out))):
            start, stop = wanted_offsets[k], wanted_offsets[k + 1]
            at = _hash(wanted, start, stop) & mask
            position = slots[at]
            while position >= 0 and not _equal(
                wanted, start, stop, texts, offsets[position], offsets[position + 1]
            ):
                at = (at + np.uint64(1)) & mask
                position = slots[at]
            out[k] = position
        finish(work)
        piece = take(work)
