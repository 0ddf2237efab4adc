"""Cache of encodings: while weights stay the same, each node is encoded only once.

    block k  =  Encoder(inputs of nodes k ROWS .. (k + 1) ROWS - 1)     computed when first needed
    while weights change:  Encoder(inputs of the requested nodes), in even parts of at most ROWS

Batches of evaluation share most of their neighbourhoods. An encoding depends on the weights and the
block alone, not on earlier requests: a run that resumes after a crash gives the same numbers.
"""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.model.feature_scaling import Inputs
from vesper.model.sparse_inputs import SparseInputs

ROWS_PER_BLOCK = 1 << 13
MAX_BYTES = 1 << 31
UNCACHED_FRACTION = 4
"""Requests for fewer than one node in this many are encoded without the cache."""


class EncodingCache:
    """Encodings by node, valid as long as the weights do not change.

    Args:
        encode: (B, num_inputs) -> (B, width), row by row, without random draws.
        weights: the module whose parameters `encode` reads.
        inputs: inputs of all nodes.
        max_bytes: above this, nothing is cached.
    """

    def __init__(
        self,
        encode: Callable[..., Tensor],
        *,
        weights: nn.Module,
        inputs: Inputs | SparseInputs,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._encode, self._weights, self._inputs = encode, weights, inputs
        self._max_bytes = max_bytes
        self.clear()

    def clear(self) -> None:
        """Drop all encodings."""
        self._cache: Tensor | None = None  # (num_nodes, width)
        self._is_encoded: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by block
        self._digest = b""

    @torch.no_grad()
    def rows(self, nodes: NDArray[np.int64]) -> Tensor:
        """Return encodings of the nodes, without gradients: (B, width)."""
        num_nodes = self._inputs.num_nodes
        if UNCACHED_FRACTION * len(nodes) < num_nodes:
            return self._encode(self._inputs.rows(nodes))
        digest = _digest_of(self._weights)
        if digest != self._digest:
            self.clear()
            self._digest = digest
        for block in np.unique(nodes // ROWS_PER_BLOCK):
            if self._cache is not None and self._is_encoded[block]:
                continue
            rows = slice(
                int(block) * ROWS_PER_BLOCK, min((int(block) + 1) * ROWS_PER_BLOCK, num_nodes)
            )
            block_rows = self._encode(self._inputs.rows(np.arange(rows.start, rows.stop)))
            if self._cache is None:
                if block_rows.element_size() * block_rows.shape[1] * num_nodes > self._max_bytes:
                    return self._encode(self._inputs.rows(nodes))
                self._cache = torch.empty(num_nodes, block_rows.shape[1], dtype=block_rows.dtype)
                self._is_encoded = np.zeros(-(-num_nodes // ROWS_PER_BLOCK), dtype=bool)
            self._cache[rows] = block_rows
            self._is_encoded[block] = True
        assert self._cache is not None  # there is at least one node, hence one block
        return self._cache.index_select(0, torch.from_numpy(nodes))


def encode_in_parts(
    encode: Callable[..., Tensor], *, inputs: Inputs | SparseInputs, nodes: NDArray[np.int64]
) -> Tensor:
    """Return encodings of the nodes, with gradients: (B, width).

    In parts, because the sampled neighbourhood of a batch may be most of a graph, whose inputs are
    hundreds of megabytes that a step would write, read and free several times over. Parts are even,
    so that none is a single row, from which some encoders cannot learn.
    """
    parts = np.array_split(nodes, max(-(-len(nodes) // ROWS_PER_BLOCK), 1))
    return torch.cat([encode(inputs.rows(part)) for part in parts])


def _digest_of(weights: nn.Module) -> bytes:
    """Digest of the bits: torch's version counters miss what a fused optimiser changes."""
    digest = hashlib.blake2b()
    for weight in weights.parameters():
        digest.update(weight.detach().contiguous().numpy().tobytes())
    return digest.digest()
