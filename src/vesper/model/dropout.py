"""Dropout with its own generator: a run repeats bit for bit, whatever else draws numbers.

y = x mask / (1 - rate),   mask ~ Bernoulli(1 - rate)      while training; y = x otherwise

The rate is a multiple of 1 / 65,536: a word of 64 random bits yields four entries of the mask. The
mask itself is never stored: the words are applied to x in one pass, and to its gradient in another
(docs/decisions/0014).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

LEVELS = 1 << 16  # values of an int16; a quarter of a word is read as one
PER_WORD = 4


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
    from vesper.model.dropout_kernel import apply_mask  # deferred: Numba is slow to load

    masked = torch.empty(x.shape, dtype=x.dtype)
    apply_mask(
        x.detach().contiguous().view(-1).numpy(),
        levels.numpy(),
        min_level=dropped_levels - LEVELS // 2,
        scale=LEVELS / (LEVELS - dropped_levels),
        out=masked.view(-1).numpy(),
        num_threads=torch.get_num_threads(),
    )
    return masked
