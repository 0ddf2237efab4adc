"""The bits of one release: entry k gets the same noise, whoever draws it and however often.

    entry k:   word start + k of AES-CTR(key);   64 bits decide all but about one draw in 2^50
    a tie:     further words from a part of the key's stream reserved for the entry

So the noise of a row does not depend on who adds it: rows may be split between threads, or between
workers of an engine, and the work of a worker that died may be repeated. A span is for one release
only: added to two different sums, it would reveal their difference.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.noise.exact_law import Law, decide, threshold_table
from vesper.mechanism.noise.rounded_gaussian import RoundedGaussian

DRAWS_PER_BLOCK = 1 << 16
"""Draws at a time: half a MiB of bits, which stay in the cache."""

WORD, WORDS_PER_COUNT = 8, 2
"""Bytes per word; words per counter value of the cipher."""

ZEROS = bytes(WORD * DRAWS_PER_BLOCK)

TIE_STREAM_START = 1 << 127
"""Counter value where words for ties start: no entry reaches it."""

COUNTS_PER_TIE = 1 << 32


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
        from vesper.parallel.pool import threads_allowed

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
        from vesper.mechanism.noise.noise_kernels import add_draws

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
