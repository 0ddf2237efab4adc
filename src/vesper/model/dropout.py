"""Dropout from a generator of its own: a run repeats bit for bit, whatever else draws numbers.

y = x mask / (1 - rate),   mask ~ Bernoulli(1 - rate)      while training; y = x otherwise

The rate is a whole number of 1 / 65,536: a word of 64 random bits makes four entries of the mask.
A float of 32 bits an entry takes more than twice as long (docs/decisions/0014).
"""

import math

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
        levels = words.view(torch.int16)[: x.numel()].view(x.shape)
        # Scaled before it meets x: one product forwards, one backwards.
        mask = (levels >= self.dropped - LEVELS // 2) * (LEVELS / (LEVELS - self.dropped))
        return x * mask
