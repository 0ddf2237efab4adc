"""The plain encoder at the data party: edge-free features to encodings.

encoding = ReLU(W_2 ReLU(W_1 x + b_1) + b_2)
"""

import torch
from torch import Tensor, nn

from vesper.model.dropout import SeededDropout
from vesper.model.own_encoder import OwnEncoder
from vesper.model.sparse_inputs import InputRows, SparseRows


class MlpEncoder(nn.Module):
    """Two-layer perceptron."""

    def __init__(self, num_inputs: int, *, width: int, dropout: float, seed: int) -> None:
        super().__init__()
        self.width = width
        self.takes_sparse_rows = dropout == 0
        """Masks fall on all entries, those that are as most are too."""
        self.layers = nn.Sequential(
            SeededDropout(dropout, seed=seed),
            nn.Linear(num_inputs, width),
            nn.ReLU(inplace=True),
            SeededDropout(dropout, seed=seed + 1),
            nn.Linear(width, width),
            nn.ReLU(inplace=True),
        )

    def forward(self, inputs: InputRows) -> Tensor:
        """(B, num_inputs) -> (B, width)."""
        if not isinstance(inputs, SparseRows):
            encodings: Tensor = self.layers(inputs)
            return encodings
        assert self.takes_sparse_rows
        _, first, *rest = self.layers
        assert isinstance(first, nn.Linear)
        rows = inputs.through(first)  # (B, width)
        for layer in rest:
            rows = layer(rows)
        return rows


def initialize(module: nn.Module, seed: int) -> None:
    """Draw every weight from one seeded generator: uniform within 1 / sqrt(inputs).

    Normalisations start as they are made, with weight 1 and bias 0, and an encoder that somebody
    else made with the weights that it came with.
    """
    generator = torch.Generator().manual_seed(seed)
    parts = list(module.modules())
    own = [part for part in parts if isinstance(part, OwnEncoder)]
    kept = {weight for part in own for weight in part.parameters()}
    with torch.no_grad():
        for weight in module.parameters():
            if weight in kept:
                continue
            bound = weight.shape[-1] ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
    theirs = {inner for part in own for inner in part.modules()}
    for part in parts:
        if isinstance(part, nn.BatchNorm1d | nn.LayerNorm) and part not in theirs:
            part.reset_parameters()
