"""The only source of noise: AES-256-CTR bits turned into draws from an exact law.

    bits of a release = AES-CTR(key),   key from the operating system, a new one for each release

A source made by `from_os` is private. One made by `for_simulation` takes all its bits from the
stream of one key, derived from a seed: everyone can repeat it, so nothing that used it is private,
and results are marked as simulated. A source cannot be saved or restored.
"""

import hashlib
import os
import secrets
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.noise.discrete_laplace import DiscreteLaplace
from vesper.mechanism.noise.span import NoiseSpan

KEY_BYTES = 32


class NoiseSource:
    """Source of fresh bits for releases; use `from_os` or `for_simulation`."""

    def __init__(self, public_key: bytes | None) -> None:
        self._public_key, self._words_given = public_key, 0
        self._process, self._lock = os.getpid(), Lock()

    def __reduce__(self) -> str:
        raise TypeError("a noise source is never saved or copied: its noise would be used twice")

    @classmethod
    def from_os(cls) -> "NoiseSource":
        """Key every release from the operating system's secure generator."""
        return cls(None)

    @classmethod
    def for_simulation(cls, seed: int) -> "NoiseSource":
        """Key the source from a seed: repeatable, hence not private."""
        return cls(hashlib.sha256(f"vesper simulated noise {seed}".encode()).digest())

    @property
    def is_private(self) -> bool:
        """Whether nobody can repeat the noise."""
        return self._public_key is None

    def key_for(self, purpose: str) -> bytes | None:
        """Derive a repeatable key for a simulation; None: the caller must use a secret key."""
        if self._public_key is None:
            return None
        return hashlib.sha256(self._public_key + purpose.encode()).digest()

    def span(self, count: int) -> NoiseSpan:
        """Return fresh bits for `count` draws of one release."""
        if os.getpid() != self._process:
            raise InputError(
                "A noise source was used in a forked process: its noise would be used twice."
            )
        if self._public_key is None:
            return NoiseSpan(secrets.token_bytes(KEY_BYTES), start=0, count=count)
        with self._lock:  # two threads must never get the same bits
            start, self._words_given = self._words_given, self._words_given + count
        return NoiseSpan(self._public_key, start=start, count=count)

    def add_gaussian_to(self, values: NDArray[np.int32], *, scale: float) -> None:
        """Add an independent round(scale * N(0, 1)) to every entry, in place."""
        self.span(values.size).add_gaussian_to(values, scale=scale)

    def add_laplace_to(self, values: NDArray[np.int32], *, epsilon: float) -> None:
        """Add an independent K with P(K = k) proportional to exp(-epsilon |k|), in place."""
        self.span(values.size).add(values, DiscreteLaplace(epsilon))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh uniform 64-bit words."""
        return self.span(count).words()
