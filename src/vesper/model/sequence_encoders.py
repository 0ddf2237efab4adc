"""Encoders of sequences: a gated recurrent unit and a small Transformer.

GRU (Cho et al. 2014):
    h_t = GRU(x_t, h_{t-1});   encoding = ReLU(W h_last + b)
Transformer (Vaswani et al. 2017):
    x = W x_t + position_t;   in each layer  x += Attention(Norm(x));  x += MLP(Norm(x))
    encoding = ReLU(mean over t of Norm(x))
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.model.network_layers import RowNorm, SeededDropout


class GruEncoder(nn.Module):
    """One-layer GRU; the encoding is a projection of its last state."""

    def __init__(
        self, step_width: int, *, steps: int, width: int, dropout: float, seed: int
    ) -> None:
        super().__init__()
        self.input_dropout = SeededDropout(dropout, seed=seed)
        self.recurrent = nn.GRU(step_width, width, batch_first=True)
        self.state_dropout = SeededDropout(dropout, seed=seed + 1)
        self.projection = nn.Linear(width, width)

    def forward(self, sequences: Tensor) -> Tensor:
        """(B, steps, step_width) -> (B, width)."""
        _, states = self.recurrent(self.input_dropout(sequences))  # (1, B, width)
        encodings: Tensor = self.projection(self.state_dropout(states[0])).relu()
        return encodings


HEADS = 4
LAYERS = 2


class TransformerEncoder(nn.Module):
    """Two layers of four heads, or fewer if four do not divide `width`; learned positions."""

    def __init__(
        self, step_width: int, *, steps: int, width: int, dropout: float, seed: int
    ) -> None:
        super().__init__()
        self.step_projection = nn.Linear(step_width, width)
        self.position_embeddings = nn.Parameter(torch.zeros(steps, width))
        self.layers = nn.Sequential(
            *(TransformerLayer(width, dropout=dropout, seed=seed + 2 * k) for k in range(LAYERS))
        )
        self.norm = RowNorm(width)

    def forward(self, sequences: Tensor) -> Tensor:
        """(B, steps, step_width) -> (B, width)."""
        # (B, steps, width)
        rows = self.layers(self.step_projection(sequences) + self.position_embeddings)
        encodings: Tensor = self.norm(rows).mean(dim=1).relu()
        return encodings


class TransformerLayer(nn.Module):
    """Attention over the steps, then a perceptron per step, each with a residual connection."""

    def __init__(self, width: int, *, dropout: float, seed: int) -> None:
        super().__init__()
        self.heads = math.gcd(HEADS, width)
        self.attention_norm, self.perceptron_norm = RowNorm(width), RowNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_output = nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )
        self.dropouts = nn.ModuleList(SeededDropout(dropout, seed=seed + k) for k in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """(B, steps, width) -> the same."""
        projected = self.query_key_value(self.attention_norm(x)).unflatten(2, (3, self.heads, -1))
        # (B, heads, steps, width / heads) each
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        x = x + self.dropouts[0](self.attention_output(attended))
        out: Tensor = x + self.dropouts[1](self.perceptron(self.perceptron_norm(x)))
        return out
