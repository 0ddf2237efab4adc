"""Dropout from a generator of its own: a run repeats bit for bit, whatever else draws numbers.

y = x mask / (1 - rate),   mask ~ Bernoulli(1 - rate)      while training; y = x otherwise
"""

import torch
from torch import Tensor, nn


class SeededDropout(nn.Module):
    """Like `torch.nn.Dropout`, without the global generator."""

    def __init__(self, rate: float, *, seed: int) -> None:
        super().__init__()
        self.rate = rate
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries while training."""
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand(x.shape, generator=self.generator) >= self.rate
        return x * kept / (1 - self.rate)
