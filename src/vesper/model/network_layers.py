"""Layers whose results do not depend on the number of threads: dropout and two normalisations.

    dropout     y = x mask / (1 - rate),   mask ~ Bernoulli(1 - rate)     in training; else y = x
    row norm    y = weight (x - mean) / sqrt(variance + eps) + bias       mean, variance of each row

`SeededDropout` has its own generator, so a run repeats bit for bit, whatever else draws numbers.
The rate is a multiple of 1 / 65,536: a word of 64 random bits yields four entries of the mask. The
mask is never stored: the words are applied to x in one pass, and to its gradient in another
(docs/decisions/0014).

PyTorch sums the gradients of weight and bias of a layer normalisation in as many parts as there are
threads, so a run on another number of cores would train other weights. `RowNorm` sums them over
rows as a linear layer does.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.parallel import pool
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

LEVELS = 1 << 16  # values of an int16; a quarter of a word is read as one
PER_WORD = 4
ENTRIES_PER_PIECE = 1 << 17
"""Entries that a thread takes at a time."""

Floats = NDArray[np.float32]


class SeededDropout(nn.Module):
    """`torch.nn.Dropout` without the global generator."""

    def __init__(self, rate: float, *, seed: int) -> None:
        super().__init__()
        self.dropped_levels = min(math.ceil(rate * LEVELS), LEVELS - 1)  # out of 65,536
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries while training."""
        if not self.training or self.dropped_levels == 0:
            return x
        words = torch.empty(-(-x.numel() // PER_WORD), dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        return _drop(x, words.view(torch.int16)[: x.numel()], self.dropped_levels)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, levels: Tensor, dropped_levels: int) -> Tensor:
        ctx.save_for_backward(levels)
        ctx.dropped = dropped_levels
        return _masked(x, levels, dropped_levels)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (levels,) = ctx.saved_tensors
        return _drop(gradients[0], levels, ctx.dropped), None, None


_drop: Callable[[Tensor, Tensor, int], Tensor] = _Drop.apply


def _masked(x: Tensor, levels: Tensor, dropped_levels: int) -> Tensor:
    """Return x, scaled up, where the level is not dropped, and 0 elsewhere."""
    masked = torch.empty(x.shape, dtype=x.dtype)
    source: Floats = x.detach().contiguous().view(-1).numpy()
    pool.run(
        _apply_mask,
        source,
        levels.numpy(),
        np.int16(dropped_levels - LEVELS // 2),
        np.float32(LEVELS / (LEVELS - dropped_levels)),
        masked.view(-1).numpy(),
        num_pieces=-(-len(source) // ENTRIES_PER_PIECE),
        num_threads=torch.get_num_threads(),
    )
    return masked


@cached_njit
def _apply_mask(
    work: Work,
    thread: int,
    x: Floats,
    levels: NDArray[np.int16],
    min_level: np.int16,
    scale: np.float32,
    out: Floats,
) -> None:
    """Write x * scale into `out` where the level is at least `min_level`, and 0 elsewhere."""
    zero = np.float32(0)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ENTRIES_PER_PIECE, min((piece + 1) * ENTRIES_PER_PIECE, len(x))):
            out[k] = x[k] * (scale if levels[k] >= min_level else zero)
        finish(work)
        piece = take(work)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses the statistics of earlier batches for a batch of one row.

    One row has no spread. The last batch of an epoch is one row whenever batch_size divides
    num_train - 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(B, width) -> (B, width)."""
        if len(input) > 1:
            return super().forward(input)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class RowNorm(nn.LayerNorm):
    """`nn.LayerNorm` of one dimension, except for the order of sums in its gradients."""

    def forward(self, input: Tensor) -> Tensor:
        """(.., width) -> (.., width)."""
        rows = F.layer_norm(input, self.normalized_shape, eps=self.eps)
        return rows * self.weight + self.bias
