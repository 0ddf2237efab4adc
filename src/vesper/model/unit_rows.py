"""Rows scaled to length 1, with gradients.

    normalized(row)  = row / ||row||_2,                  and 0 for a zero row, as ReLU makes it
    rectified(row)   = normalized(ReLU(row))
    d row            = (d - unit <unit, d>) / ||row||_2,     d = gradient of unit = normalized(row)

PyTorch's own operations take up to twelve passes over all rows for either; these take one forward
and one backward.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class _UnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, rectify: bool) -> Tensor:
        from vesper.model.unit_rows_kernel import scale_to_unit  # deferred: Numba is slow to load

        directions = torch.empty(rows.shape, dtype=rows.dtype)  # (B, width)
        lengths = torch.empty(len(rows), dtype=rows.dtype)  # (B,)
        scale_to_unit(
            rows.detach().contiguous().numpy(),
            rectify=rectify,
            directions=directions.numpy(),
            lengths=lengths.numpy(),
            num_threads=torch.get_num_threads(),
        )
        ctx.save_for_backward(directions, lengths)
        ctx.rectify = rectify
        return directions

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        from vesper.model.unit_rows_kernel import unit_gradient

        directions, lengths = ctx.saved_tensors
        row_gradients = torch.empty(directions.shape, dtype=directions.dtype)  # (B, width)
        unit_gradient(
            gradients[0].contiguous().numpy(),
            rectify=ctx.rectify,
            directions=directions.detach().numpy(),
            lengths=lengths.numpy(),
            out=row_gradients.numpy(),
            num_threads=torch.get_num_threads(),
        )
        return row_gradients, None


_unit_rows: Callable[[Tensor, bool], Tensor] = _UnitRows.apply


def unit_rows(rows: Tensor) -> Tensor:
    """Scale each row to length 1; (B, width) to the same.

    | row | result | gradient |
    | --- | --- | --- |
    | zero | zero; the paper divides by 0 | unchanged |
    """
    return _unit_rows(rows, False)


def rectified_unit_rows(rows: Tensor) -> Tensor:
    """Scale the positive part of each row to length 1; (B, width) to the same.

    | row | result | gradient |
    | --- | --- | --- |
    | nothing above 0 | zero | zero |
    """
    return _unit_rows(rows, True)
