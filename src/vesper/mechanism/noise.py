"""The only source of noise: AES-256-CTR bits turned into draws from an exact law.

    bits = AES-CTR(key),   key from the operating system

A source made by `from_os` is private. One made by `for_simulation` is the same machine with a key
made from a seed: everyone can repeat it, so nothing that used it is private, and results say so.
There is no way to save or restore a source.
"""

import hashlib
import os
import secrets
from threading import Lock

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.discrete_laplace import DiscreteLaplace
from vesper.mechanism.law import Law, decide, table_of
from vesper.mechanism.rounded_gaussian import RoundedGaussian

BLOCK = 1 << 18
"""Draws made at a time: 2 MiB of bits, which stay in the cache."""


class NoiseSource:
    """Draws rounded Gaussians; use `from_os` or `for_simulation`."""

    def __init__(self, key: bytes, *, is_private: bool) -> None:
        self.is_private = is_private
        self._stream = Cipher(AES(key), CTR(bytes(16))).encryptor()
        self._zeros = bytes(8 * BLOCK)
        self._buffer = bytearray(8 * BLOCK + 15)  # the cipher asks for a block of room
        self._ties = np.empty(BLOCK, dtype=np.int64)
        self._process, self._lock = os.getpid(), Lock()

    def __reduce__(self) -> str:
        raise TypeError("a noise source is never saved or copied: its noise would come twice")

    @classmethod
    def from_os(cls) -> "NoiseSource":
        """Key the source from the operating system's secure generator."""
        return cls(secrets.token_bytes(32), is_private=True)

    @classmethod
    def for_simulation(cls, seed: int) -> "NoiseSource":
        """Key the source from a seed: repeatable, hence not private."""
        key = hashlib.sha256(f"vesper simulated noise {seed}".encode()).digest()
        return cls(key, is_private=False)

    def add_gaussian_to(self, values: NDArray[np.int32], *, scale: float) -> None:
        """Add an independent round(scale * N(0, 1)) to every entry, in place."""
        self._add(values, RoundedGaussian(scale))

    def add_laplace_to(self, values: NDArray[np.int32], *, epsilon: float) -> None:
        """Add an independent K with P(K = k) proportional to exp(-epsilon |k|), in place."""
        self._add(values, DiscreteLaplace(epsilon))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Give `count` fresh uniform words of 64 bits."""
        self._refuse_fork()
        drawn = np.empty(count, dtype=np.uint64)
        with self._lock:  # two threads must never see the same bits
            for start in range(0, count, BLOCK):
                block = drawn[start : start + BLOCK]
                block[:] = self._bits(len(block))
        return drawn

    def _add(self, values: NDArray[np.int32], law: Law) -> None:
        from numba import get_num_threads

        from vesper.graph import team
        from vesper.mechanism.noise_kernels import PIECE, add_pieces

        if not values.flags.c_contiguous:
            raise InputError("Expected a contiguous array to add noise to.")
        self._refuse_fork()
        table = table_of(law)
        flat = values.reshape(-1)
        num_ties = np.zeros(-(-BLOCK // PIECE), dtype=np.int64)
        with self._lock:  # two threads must never see the same bits
            for start in range(0, len(flat), BLOCK):
                block = flat[start : start + BLOCK]
                bits = self._bits(len(block))  # (draws,)
                num_pieces = -(-len(block) // PIECE)
                team.run(
                    add_pieces,
                    bits,
                    table.high,
                    table.guide,
                    table.shift,
                    table.offset,
                    block,
                    self._ties,
                    num_ties,
                    num_pieces=num_pieces,
                    num_threads=get_num_threads(),
                )
                tied = [
                    PIECE * piece + int(k)
                    for piece in range(num_pieces)
                    for k in self._ties[PIECE * piece :][: num_ties[piece]]
                ]
                for k, first in [(k, int(bits[k])) for k in tied]:  # read before more bits come
                    block[k] += decide(law, first, lambda: int(self._bits(1)[0]))

    def _refuse_fork(self) -> None:
        if os.getpid() != self._process:
            raise InputError("A noise source is used in a fork: its noise would come twice.")

    def _bits(self, count: int) -> NDArray[np.uint64]:
        """Give the next `count` words of the stream; the array is good until the next call."""
        self._stream.update_into(memoryview(self._zeros)[: 8 * count], self._buffer)
        return np.frombuffer(self._buffer, dtype="<u8", count=count)
