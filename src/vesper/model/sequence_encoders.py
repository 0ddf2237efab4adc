"""Sequences to encodings with a small Transformer (Vaswani et al. 2017).

x = W x_t + place_t;   x += Attention(Norm(x));   x += MLP(Norm(x));   encoding = ReLU(mean over t)

Sequences to encodings with a gated recurrent unit (Cho et al. 2014).

h_t = GRU(x_t, h_{t-1});   encoding = ReLU(W h_last + b)
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.model.dropout import SeededDropout
from vesper.model.norms import RowNorm


class GruEncoder(nn.Module):
    """One layer; the last state is what it has understood."""

    def __init__(
        self, step_width: int, *, steps: int, width: int, dropout: float, seed: int
    ) -> None:
        super().__init__()
        self.before = SeededDropout(dropout, seed=seed)
        self.recurrent = nn.GRU(step_width, width, batch_first=True)
        self.after = SeededDropout(dropout, seed=seed + 1)
        self.last = nn.Linear(width, width)

    def forward(self, sequences: Tensor) -> Tensor:
        """(B, steps, step_width) -> (B, width)."""
        _, states = self.recurrent(self.before(sequences))  # (1, B, width)
        encodings: Tensor = self.last(self.after(states[0])).relu()
        return encodings


HEADS = 4
LAYERS = 2


class TransformerEncoder(nn.Module):
    """Two layers of four heads, fewer where `width` does not divide; learned places."""

    def __init__(
        self, step_width: int, *, steps: int, width: int, dropout: float, seed: int
    ) -> None:
        super().__init__()
        self.first = nn.Linear(step_width, width)
        self.places = nn.Parameter(torch.zeros(steps, width))
        self.layers = nn.Sequential(
            *(Layer(width, dropout=dropout, seed=seed + 2 * k) for k in range(LAYERS))
        )
        self.norm = RowNorm(width)

    def forward(self, sequences: Tensor) -> Tensor:
        """(B, steps, step_width) -> (B, width)."""
        read = self.layers(self.first(sequences) + self.places)  # (B, steps, width)
        encodings: Tensor = self.norm(read).mean(dim=1).relu()
        return encodings


class Layer(nn.Module):
    """Attention over the steps, then a perceptron a step; both add to what is there."""

    def __init__(self, width: int, *, dropout: float, seed: int) -> None:
        super().__init__()
        self.heads = math.gcd(HEADS, width)
        self.before, self.between = RowNorm(width), RowNorm(width)
        self.questions = nn.Linear(width, 3 * width)
        self.answers = nn.Linear(width, width)
        self.inner = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )
        self.drops = nn.ModuleList(SeededDropout(dropout, seed=seed + k) for k in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """(B, steps, width) -> the same."""
        asked = self.questions(self.before(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = asked.permute(2, 0, 3, 1, 4)  # (B, heads, steps, width / heads) each
        heard = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        x = x + self.drops[0](self.answers(heard))
        out: Tensor = x + self.drops[1](self.inner(self.between(x)))
        return out
