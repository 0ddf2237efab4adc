"""Encodings of nodes while weights stay: each node is encoded once, however often it is asked for.

    block k  =  Encoder(inputs of nodes k ROWS .. (k + 1) ROWS - 1)         made when first needed
    while weights change:  Encoder(inputs of the nodes asked for), in even parts of at most ROWS

Blocks of evaluation share most of their neighbourhoods. What is made depends on the weights and the
block alone, not on who asked before: a run that goes on after a crash gives the same numbers.
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
"""Who asks for fewer than one node in so many gets these and no blocks."""


class EncodingCache:
    """Encodings by node, for as long as weights are what they were.

    Args:
        encode: (B, num_inputs) -> (B, width), row by row, without drawing anything.
        weights: whose parameters `encode` reads.
        inputs: of all nodes.
        max_bytes: above this nothing is kept.
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
        """Let go of all encodings."""
        self._cache: Tensor | None = None  # (num_nodes, width)
        self._is_encoded: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by block
        self._digest = b""

    @torch.no_grad()
    def rows(self, nodes: NDArray[np.int64]) -> Tensor:
        """Encodings of the nodes, without gradients: (B, width)."""
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
    """Encodings of the nodes with gradients: (B, width).

    In parts: the sampled neighbourhood of a batch may be most of a graph, whose inputs are then
    hundreds of megabytes that a step writes, reads and gives back several times over. Parts are
    even, so that none has a row alone, of which some encoders cannot learn.
    """
    parts = np.array_split(nodes, max(-(-len(nodes) // ROWS_PER_BLOCK), 1))
    return torch.cat([encode(inputs.rows(part)) for part in parts])


def _digest_of(weights: nn.Module) -> bytes:
    """What weights are, by their bits: a fused optimiser changes them without telling torch."""
    digest = hashlib.blake2b()
    for weight in weights.parameters():
        digest.update(weight.detach().contiguous().numpy().tobytes())
    return digest.digest()
