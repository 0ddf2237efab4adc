"""Digests of the nodes of a batch, so that rows can never silently shift."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from vesper.protocol.messages import IdTexts


def digest_of(roots: NDArray[np.int64]) -> bytes:
    """Digest positions in the roster order both sides share."""
    return hashlib.blake2b(roots.astype("<i8").tobytes(), digest_size=16).digest()


def digest_of_ids(ids: IdTexts) -> bytes:
    """Digest ids, in this order."""
    digest = hashlib.blake2b(digest_size=16)
    for text in ids:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(4, "little") + encoded)
    return digest.digest()
