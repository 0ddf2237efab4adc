"""Dropout from a generator of its own: a run repeats bit for bit, whatever else draws numbers.

y = x mask / (1 - rate),   mask ~ Bernoulli(1 - rate)      while training; y = x otherwise

The rate is a whole number of 1 / 65,536: a word of 64 random bits makes four entries of the mask.
The mask itself is never written down: words meet x in one pass, and its gradient in another
(docs/decisions/0014).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

LEVELS = 1 << 16  # of an int16, which is how a quarter of a word is read
PER_WORD = 4


class SeededDropout(nn.Module):
    """Like `torch.nn.Dropout`, without the global generator."""

    def __init__(self, rate: float, *, seed: int) -> None:
        super().__init__()
        self.dropped = min(math.ceil(rate * LEVELS), LEVELS - 1)  # levels, of 65,536
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries while training."""
        if not self.training or self.dropped == 0:
            return x
        words = torch.empty(-(-x.numel() // PER_WORD), dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        return _drop(x, words.view(torch.int16)[: x.numel()], self.dropped)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, levels: Tensor, dropped: int) -> Tensor:
        ctx.save_for_backward(levels)
        ctx.dropped = dropped
        return _kept(x, levels, dropped)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (levels,) = ctx.saved_tensors
        return _drop(gradients[0], levels, ctx.dropped), None, None


_drop: Callable[[Tensor, Tensor, int], Tensor] = _Drop.apply


def _kept(x: Tensor, levels: Tensor, dropped: int) -> Tensor:
    """Give x, scaled up, where the level is not among those dropped; else 0."""
    from vesper.model.dropout_kernel import keep  # late: Numba takes a while to load

    kept = torch.empty(x.shape, dtype=x.dtype)
    keep(
        x.detach().contiguous().view(-1).numpy(),
        levels.numpy(),
        least=dropped - LEVELS // 2,
        scale=LEVELS / (LEVELS - dropped),
        out=kept.view(-1).numpy(),
        num_threads=torch.get_num_threads(),
    )
    return kept
