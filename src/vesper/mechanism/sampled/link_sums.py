"""A sparse matrix times rows, with the gradient with respect to the rows.

    sums  = A rows,    A[v, u] = weight of the link u -> v
    d rows = A^T d sums

The gradient is the same kind of sum over the transposed links. PyTorch's own gradient of
`embedding_bag` sorts the indices and adds row by row; transposing first is several times faster and
adds in a fixed order, so that a run repeats bit for bit.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import InputError
from vesper.parallel.compile_cache import cached_njit

Ints = NDArray[np.int32]
LinkWeights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Links:
    """Weighted links into each receiver, as the rows of a sparse matrix.

    Args:
        indptr: (num_receivers + 1,) int32, where each row starts.
        indices: (num_links,) int32, the sender of each link.
        weights: (num_links,) float32, or None if all weights are 1.
        num_senders: number of senders.
    """

    indptr: Ints
    indices: Ints
    weights: LinkWeights | None
    num_senders: int

    @property
    def num_receivers(self) -> int:
        """Number of receivers."""
        return len(self.indptr) - 1

    def for_receivers(self, receivers: NDArray[np.int64]) -> "Links":
        """Return only the links into these receivers, in their order."""
        lengths = np.diff(self.indptr)[receivers]
        indptr = offsets_of(lengths)
        shifts = np.repeat(self.indptr[receivers] - indptr[:-1], lengths)
        at = np.arange(indptr[-1]) + shifts  # (num_links,)
        weights = None if self.weights is None else self.weights[at]
        return Links(indptr, self.indices[at], weights, self.num_senders)

    def apply(self, rows: Tensor) -> Tensor:
        """Compute A rows without a gradient: (num_senders, width) to (num_receivers, width)."""
        weights = None if self.weights is None else torch.from_numpy(self.weights).to(rows.dtype)
        sums: Tensor = torch.embedding_bag(
            rows,
            torch.from_numpy(self.indices),
            torch.from_numpy(self.indptr),
            False,
            0,  # mode: sum
            False,
            weights,
            True,  # indptr includes the end of the last row
        )[0]
        return sums

    def transposed(self) -> "Links":
        """Return the same links with senders and receivers exchanged."""
        indptr = np.zeros(self.num_senders + 1, dtype=np.int32)
        indices = np.empty_like(self.indices)
        old_weights = np.empty(0, dtype=np.float32) if self.weights is None else self.weights
        weights = np.empty_like(old_weights)
        _transpose(self.indptr, self.indices, old_weights, indptr, indices, weights)
        return Links(
            indptr=indptr,
            indices=indices,
            weights=None if self.weights is None else weights,
            num_senders=self.num_receivers,
        )


def offsets_of(lengths: NDArray[np.int64]) -> Ints:
    """Return where rows of these lengths start and end.

    Raises:
        InputError: there are more links than 32 bits can count.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InputError(f"a sparse product: expected fewer than 2^31 links, got {offsets[-1]:,}")
    return offsets.astype(np.int32)


def links_of(blocks: Iterable[NDArray[np.float32]], num_senders: int) -> Links:
    """Build links from the non-zero entries of a matrix, given in blocks of rows."""
    lengths, columns, values = [], [], []
    for block in blocks:  # (rows, num_senders)
        row, column = np.nonzero(block)
        lengths.append(np.bincount(row, minlength=len(block)))
        columns.append(column.astype(np.int32))
        values.append(block[row, column])
    indptr = offsets_of(np.concatenate(lengths))
    return Links(indptr, np.concatenate(columns), np.concatenate(values), num_senders)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, links: Links) -> Tensor:
        ctx.links = links
        return links.apply(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.links.transposed().apply(gradients[0].contiguous()), None


weighted_sum: Callable[[Tensor, Links], Tensor] = _WeightedSum.apply
"""Compute A rows with a gradient: (num_senders, width) to (num_receivers, width)."""


@cached_njit
def _transpose(
    indptr: Ints,
    indices: Ints,
    weights: LinkWeights,
    out_indptr: Ints,
    out_indices: Ints,
    out_weights: LinkWeights,
) -> None:
    """Count, accumulate, scatter; links of one sender stay in the order of their receivers."""
    for sender in indices:
        out_indptr[sender + 1] += 1
    for sender in range(len(out_indptr) - 1):
        out_indptr[sender + 1] += out_indptr[sender]
    at = out_indptr[:-1].copy()
    for receiver in range(len(indptr) - 1):
        for link in range(indptr[receiver], indptr[receiver + 1]):
            sender = indices[link]
            out_indices[at[sender]] = receiver
            if len(weights):
                out_weights[at[sender]] = weights[link]
            at[sender] += 1
