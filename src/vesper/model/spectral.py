"""Weights of operator norm 1.

    estimated:  v = normalize(W^T u),  u = normalize(W v);  W / (u^T W v)     one step a batch
    exact:      W / ||W||_2

One power iteration is what the paper prints (Miyato et al.). It estimates the norm from below, so
the weight is longer than 1 until u has settled: no bound, hence nothing certified rests on it.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class UnitWeight(nn.Module):
    """An (outputs, inputs) weight, divided by its operator norm where it is used.

    Args:
        inputs: columns.
        outputs: rows.
        exact: by singular values, or by one power iteration a training step.
        seed: of the first u.
    """

    u: Tensor

    def __init__(self, inputs: int, outputs: int, *, exact: bool, seed: int) -> None:
        super().__init__()
        self.exact = exact
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        first = torch.randn(outputs, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("u", F.normalize(first, dim=0))  # (outputs,)

    def forward(self) -> Tensor:
        """The weight, (outputs, inputs)."""
        if self.exact:
            norm: Tensor = torch.linalg.matrix_norm(self.weight, ord=2)
            return self.weight / norm
        with torch.no_grad():
            v = F.normalize(self.weight.T @ self.u, dim=0)  # (inputs,)
            u = F.normalize(self.weight @ v, dim=0)  # (outputs,)
            if self.training:
                self.u = u
        return self.weight / torch.dot(u, self.weight @ v)
