"""A sparse matrix times rows, with the gradient by the rows.

    sums  = A rows,    A[v, u] = weight of the link u -> v
    d rows = A^T d sums

The gradient is a sum of the same kind over the transposed links. PyTorch's own gradient of
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
    """Links into each receiver, in rows.

    Args:
        indptr: (num_receivers + 1,) int32.
        indices: (num_links,) int32, the sender of each link.
        weights: (num_links,) float32, or None where all weights are 1.
        num_senders: how many senders there are.
    """

    indptr: Ints
    indices: Ints
    weights: LinkWeights | None
    num_senders: int

    @property
    def num_receivers(self) -> int:
        """How many receivers there are."""
        return len(self.indptr) - 1

    def for_receivers(self, receivers: NDArray[np.int64]) -> "Links":
        """Only the links into these receivers, in their order."""
        lengths = np.diff(self.indptr)[receivers]
        indptr = offsets_of(lengths)
        moved = np.repeat(self.indptr[receivers] - indptr[:-1], lengths)
        at = np.arange(indptr[-1]) + moved  # (num_links,)
        weights = None if self.weights is None else self.weights[at]
        return Links(indptr, self.indices[at], weights, self.num_senders)

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
            num_senders=self.num_receivers,
        )


def offsets_of(lengths: NDArray[np.int64]) -> Ints:
    """Where rows of these lengths begin and end.

    Raises:
        InputError: there are more links than 32 bits can count.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InputError(f"a sparse product: expected fewer than 2^31 links, got {offsets[-1]:,}")
    return offsets.astype(np.int32)


def links_of(blocks: Iterable[NDArray[np.float32]], num_senders: int) -> Links:
    """Links as the entries of a matrix that are not 0, given in blocks of its rows."""
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
"""A rows, with its gradient: (num_senders, width) to (num_receivers, width)."""


@cached_njit
def _transpose(
    indptr: Ints,
    indices: Ints,
    weights: LinkWeights,
    into: Ints,
    receivers: Ints,
    moved: LinkWeights,
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
