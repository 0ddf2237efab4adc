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

ROWS = 1 << 13
MOST_BYTES = 1 << 31
FEW = 4
"""Who asks for fewer than one node in so many gets these and no blocks."""


class KeptEncodings:
    """Encodings by node, for as long as weights are what they were.

    Args:
        encode: (B, num_inputs) -> (B, width), row by row, without drawing anything.
        weights: whose parameters `encode` reads.
        inputs: of all nodes.
        most_bytes: above this nothing is kept.
    """

    def __init__(
        self,
        encode: Callable[..., Tensor],
        *,
        weights: nn.Module,
        inputs: Inputs | SparseInputs,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._encode, self._weights, self._inputs = encode, weights, inputs
        self._most_bytes = most_bytes
        self.forget()

    def forget(self) -> None:
        """Let go of all encodings."""
        self._kept: Tensor | None = None  # (num_nodes, width)
        self._made: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by block
        self._digest = b""

    @torch.no_grad()
    def of(self, nodes: NDArray[np.int64]) -> Tensor:
        """Encodings of the nodes, without gradients: (B, width)."""
        num_nodes = self._inputs.num_nodes
        if FEW * len(nodes) < num_nodes:
            return self._encode(self._inputs.of(nodes))
        digest = _digest_of(self._weights)
        if digest != self._digest:
            self.forget()
            self._digest = digest
        for block in np.unique(nodes // ROWS):
            if self._kept is not None and self._made[block]:
                continue
            rows = slice(int(block) * ROWS, min((int(block) + 1) * ROWS, num_nodes))
            made = self._encode(self._inputs.of(np.arange(rows.start, rows.stop)))
            if self._kept is None:
                if made.element_size() * made.shape[1] * num_nodes > self._most_bytes:
                    return self._encode(self._inputs.of(nodes))
                self._kept = torch.empty(num_nodes, made.shape[1], dtype=made.dtype)
                self._made = np.zeros(-(-num_nodes // ROWS), dtype=bool)
            self._kept[rows] = made
            self._made[block] = True
        assert self._kept is not None  # there is at least one node, hence one block
        return self._kept.index_select(0, torch.from_numpy(nodes))


def encoded(
    encode: Callable[..., Tensor], *, inputs: Inputs | SparseInputs, nodes: NDArray[np.int64]
) -> Tensor:
    """Encodings of the nodes with gradients: (B, width).

    In parts: the sampled neighbourhood of a batch may be most of a graph, whose inputs are then
    hundreds of megabytes that a step writes, reads and gives back several times over. Parts are
    even, so that none has a row alone, of which some encoders cannot learn.
    """
    parts = np.array_split(nodes, max(-(-len(nodes) // ROWS), 1))
    return torch.cat([encode(inputs.of(part)) for part in parts])


def _digest_of(weights: nn.Module) -> bytes:
    """What weights are, by their bits: a fused optimiser changes them without telling torch."""
    digest = hashlib.blake2b()
    for weight in weights.parameters():
        digest.update(weight.detach().contiguous().numpy().tobytes())
    return digest.digest()
