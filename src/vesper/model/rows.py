"""Rows of one length, with gradients.

    normalized = row / ||row||_2,                    and 0 for a zero row, as ReLU makes it
    d row      = (d - normalized <normalized, d>) / ||row||_2,    d = gradient of normalized

The gradient is written out: what autograd makes of the division passes over all rows twelve times,
this does four times.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class _Normalized(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)  # (B, 1)
        lengths.masked_fill_(lengths == 0, 1.0)
        directions = rows / lengths
        ctx.save_for_backward(directions, lengths)
        return directions

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        directions, lengths = ctx.saved_tensors
        along = (directions * gradients[0]).sum(dim=1, keepdim=True)  # (B, 1)
        across = torch.addcmul(gradients[0], directions, along, value=-1)
        return across.div_(lengths)


normalized: Callable[[Tensor], Tensor] = _Normalized.apply
"""Scale each row to length 1; (B, width) to the same.

| row | result | gradient |
| --- | --- | --- |
| zero | zero; the paper divides by 0 | passes as it is |
"""
