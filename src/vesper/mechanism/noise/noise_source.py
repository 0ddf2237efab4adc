"""The only source of noise: AES-256-CTR bits turned into draws from an exact law.

    bits of a release = AES-CTR(key),   key from the operating system, a new one for each release
    entry k:   word start + k of the stream;   64 bits decide all but about one draw in 2^50
    a tie:     further words from a part of the key's stream reserved for the entry

A source made by `from_os` is private. So is one made by `for_release`, for one release: all its
bits come from the stream of one secret key, so that a process that died while it drew that release
is succeeded by one that draws the same (`release_store`). A source made by `for_simulation` has one
key for all releases, derived from a seed: everyone can repeat it, so nothing that used it is
private, and results are marked as simulated. A source cannot be saved or restored.

Entry k of a release gets the same noise, whoever draws it and however often. So rows may be split
between threads, or between workers of an engine, and the work of a worker that died may be
repeated. A span is for one release only: added to two different sums, it would reveal their
difference.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.noise.discrete_laplace import DiscreteLaplace
from vesper.mechanism.noise.exact_law import Law, decide, threshold_table
from vesper.mechanism.noise.rounded_gaussian import RoundedGaussian
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import threads_allowed

KEY_BYTES = 32

DRAWS_PER_BLOCK = 1 << 16
"""Draws at a time: half a MiB of bits, which stay in the cache."""

WORD, WORDS_PER_COUNT = 8, 2
"""Bytes per word; words per counter value of the cipher."""

ZEROS = bytes(WORD * DRAWS_PER_BLOCK)

TIE_STREAM_START = 1 << 127
"""Counter value where words for ties start: no entry reaches it."""

COUNTS_PER_TIE = 1 << 32


class NoiseSource:
    """Source of fresh bits; use `from_os`, `for_release` or `for_simulation`."""

    def __init__(self, key: bytes | None, *, is_private: bool) -> None:
        self._key, self._is_private, self._words_given = key, is_private, 0
        self._process, self._lock = os.getpid(), Lock()

    def __reduce__(self) -> str:
        raise TypeError("a noise source is never saved or copied: its noise would be used twice")

    @classmethod
    def from_os(cls) -> "NoiseSource":
        """Key every release from the operating system's secure generator."""
        return cls(None, is_private=True)

    @classmethod
    def for_release(cls, key: bytes) -> "NoiseSource":
        """Take all bits of one release, and of no other, from a secret key that was made for it."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"expected a key of {KEY_BYTES} bytes, got {len(key)}")
        return cls(key, is_private=True)

    @classmethod
    def for_simulation(cls, seed: int) -> "NoiseSource":
        """Key the source from a seed: repeatable, hence not private."""
        key = hashlib.sha256(f"vesper simulated noise {seed}".encode()).digest()
        return cls(key, is_private=False)

    @property
    def is_private(self) -> bool:
        """Whether nobody without a secret key can repeat the noise."""
        return self._is_private

    def key_for(self, purpose: str) -> bytes | None:
        """Derive a repeatable key for a simulation; None: the caller must use a secret key."""
        if self._key is None or self._is_private:
            return None
        return hashlib.sha256(self._key + purpose.encode()).digest()

    def span(self, count: int) -> "NoiseSpan":
        """Return bits for `count` draws of one release that this source has not returned before."""
        if os.getpid() != self._process:
            raise InputError(
                "A noise source was used in a forked process: its noise would be used twice."
            )
        if self._key is None:
            return NoiseSpan(secrets.token_bytes(KEY_BYTES), start=0, count=count)
        with self._lock:  # two threads must never get the same bits
            start, self._words_given = self._words_given, self._words_given + count
        return NoiseSpan(self._key, start=start, count=count)

    def add_gaussian_to(self, values: NDArray[np.int32], *, scale: float) -> None:
        """Add an independent round(scale * N(0, 1)) to every entry, in place."""
        self.span(values.size).add_gaussian_to(values, scale=scale)

    def add_laplace_to(self, values: NDArray[np.int32], *, epsilon: float) -> None:
        """Add an independent K with P(K = k) proportional to exp(-epsilon |k|), in place."""
        self.span(values.size).add(values, DiscreteLaplace(epsilon))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh uniform 64-bit words."""
        return self.span(count).words()


@dataclass(frozen=True)
class NoiseSpan:
    """Words of one stream for one release.

    Args:
        key: key of the cipher; whoever knows it can subtract the noise.
        start: position in the stream of the first word.
        count: number of entries.
    """

    key: bytes = field(repr=False)
    start: int
    count: int

    def add_gaussian_to(self, values: NDArray[np.int32], *, scale: float, first: int = 0) -> None:
        """Add round(scale * N(0, 1)) to entries first, first + 1, .. of the release, in place."""
        self.add(values, RoundedGaussian(scale), first=first)

    def add(self, values: NDArray[np.int32], law: Law, *, first: int = 0) -> None:
        """Add a draw from the law to entries first, first + 1, .. of the release, in place."""
        if not values.flags.c_contiguous:
            raise InputError("Expected a contiguous array to add noise to.")
        flat = values.reshape(-1)
        self._refuse_beyond(first, len(flat))
        threshold_table(law)  # computed once, before several threads need it
        stretch = DRAWS_PER_BLOCK * -(-len(flat) // (DRAWS_PER_BLOCK * threads_allowed()))
        starts = range(0, len(flat), max(stretch, DRAWS_PER_BLOCK))

        def add_stretch(start: int) -> None:
            self._add_sequentially(flat[start : start + stretch], law, first=first + start)

        if len(starts) < 2:
            self._add_sequentially(flat, law, first=first)
            return
        with ThreadPoolExecutor(len(starts)) as threads:
            list(threads.map(add_stretch, starts))

    def _add_sequentially(self, flat: NDArray[np.int32], law: Law, *, first: int) -> None:
        """Add to one entry after the other; most of it runs without the interpreter lock."""
        table, next_words = threshold_table(law), self._words(first, len(flat))
        ties = np.empty(min(DRAWS_PER_BLOCK, len(flat)), dtype=np.int64)
        for start in range(0, len(flat), DRAWS_PER_BLOCK):
            block = flat[start : start + DRAWS_PER_BLOCK]
            bits = next_words(len(block))  # (draws,)
            num_ties = add_draws(
                bits, table.high, table.guide, table.shift, table.offset, block, ties
            )
            for k in ties[:num_ties]:
                further = self._further_words(first + start + int(k))
                block[k] += decide(law, int(bits[k]), further)

    def words(self) -> NDArray[np.uint64]:
        """Return all words of the span, uniform and unprocessed."""
        words = np.empty(self.count, dtype=np.uint64)
        next_words = self._words(0, self.count)
        for start in range(0, self.count, DRAWS_PER_BLOCK):
            block = words[start : start + DRAWS_PER_BLOCK]
            block[:] = next_words(len(block))
        return words

    def _words(self, first: int, count: int) -> Callable[[int], NDArray[np.uint64]]:
        """Return a reader of words first .. first + count - 1.

        Each call returns the next so many words, valid until the next call.
        """
        self._refuse_beyond(first, count)
        counts, odd = divmod(self.start + first, WORDS_PER_COUNT)
        stream = self._stream(counts)
        stream.update(ZEROS[: WORD * odd])
        # The cipher requires space for one more block.
        buffer = bytearray(WORD * min(count, DRAWS_PER_BLOCK) + 15)

        def next_words(count: int) -> NDArray[np.uint64]:
            stream.update_into(memoryview(ZEROS)[: WORD * count], buffer)
            return np.frombuffer(buffer, dtype="<u8", count=count)

        return next_words

    def _refuse_beyond(self, first: int, count: int) -> None:
        if not 0 <= first <= first + count <= self.count:
            raise InputError(
                f"Expected entries within a release of {self.count}, got {first} to "
                f"{first + count}."
            )

    def _further_words(self, entry: int) -> Callable[[], int]:
        """Return a function that returns 64 further bits of an entry per call."""
        stream = self._stream(TIE_STREAM_START + COUNTS_PER_TIE * (self.start + entry))
        return lambda: int.from_bytes(stream.update(bytes(WORD)), "little")

    def _stream(self, counts: int) -> CipherContext:
        return Cipher(AES(self.key), CTR(counts.to_bytes(16, "big"))).encryptor()


@cached_njit
def add_draws(
    bits: NDArray[np.uint64],
    high: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: np.uint64,
    offset: int,
    out: NDArray[np.int32],
    ties: NDArray[np.int64],
) -> int:
    """Add one draw to each entry: walk from the guide to the first threshold above the bits.

    64 bits that equal those of a threshold are undecided: the position is written to `ties` and
    nothing is added. Returns the number of ties, about one in 2^50 draws.
    """
    num_ties = 0
    last = len(high) - 1
    for k in range(len(out)):
        uniform = bits[k]
        at = guide[uniform >> shift]
        while at <= last and uniform > high[at]:
            at += 1
        if at <= last and uniform == high[at]:
            ties[num_ties] = k
            num_ties += 1
        else:
            out[k] += at - offset
    return num_ties
