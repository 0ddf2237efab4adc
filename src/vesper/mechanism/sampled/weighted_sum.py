"""A sparse matrix times rows, with the gradient by the rows.

    sums  = A rows,    A[v, u] = weight of the link u -> v
    d rows = A^T d sums

The gradient is a sum of the same kind over the transposed links. PyTorch's own gradient of
`embedding_bag` sorts the indices and adds row by row; transposing first is several times faster and
adds in a fixed order, so that a run repeats bit for bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.graph.compiled import compiled

Ints = NDArray[np.int32]
Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Links:
    """Links into each receiver, in rows.

    Args:
        indptr: (num_receivers + 1,) int32.
        indices: (num_links,) int32, the sender of each link.
        weights: (num_links,) float32, or None where all weights are 1.
        num_senders: how many senders there are.
    """

    indptr: Ints
    indices: Ints
    weights: Weights | None
    num_senders: int

    def apply(self, rows: Tensor) -> Tensor:
        """A rows, without a gradient: (num_senders, width) to (num_receivers, width)."""
        weights = None if self.weights is None else torch.from_numpy(self.weights).to(rows.dtype)
        sums: Tensor = torch.embedding_bag(
            rows,
            torch.from_numpy(self.indices),
            torch.from_numpy(self.indptr),
            False,
            0,  # mode: sum
            False,
            weights,
            True,  # indptr has its end
        )[0]
        return sums

    def transposed(self) -> "Links":
        """The same links seen from their senders."""
        indptr = np.zeros(self.num_senders + 1, dtype=np.int32)
        indices = np.empty_like(self.indices)
        given = np.empty(0, dtype=np.float32) if self.weights is None else self.weights
        weights = np.empty_like(given)
        _transpose(self.indptr, self.indices, given, indptr, indices, weights)
        return Links(
            indptr=indptr,
            indices=indices,
            weights=None if self.weights is None else weights,
            num_senders=len(self.indptr) - 1,
        )


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, links: Links) -> Tensor:
        ctx.links = links
        return links.apply(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.links.transposed().apply(gradients[0].contiguous()), None


weighted_sum: Callable[[Tensor, Links], Tensor] = _WeightedSum.apply
"""A rows, with its gradient: (num_senders, width) to (num_receivers, width)."""


@compiled
def _transpose(
    indptr: Ints, indices: Ints, weights: Weights, into: Ints, receivers: Ints, moved: Weights
) -> None:
    """Count, cumulate, scatter; links of one sender keep the order of their receivers."""
    for sender in indices:
        into[sender + 1] += 1
    for sender in range(len(into) - 1):
        into[sender + 1] += into[sender]
    at = into[:-1].copy()
    for receiver in range(len(indptr) - 1):
        for link in range(indptr[receiver], indptr[receiver + 1]):
            sender = indices[link]
            receivers[at[sender]] = receiver
            if len(weights):
                moved[at[sender]] = weights[link]
            at[sender] += 1
