"""Sequences to encodings with a gated recurrent unit (Cho et al. 2014).

h_t = GRU(x_t, h_{t-1});   encoding = ReLU(W h_last + b)
"""

from torch import Tensor, nn

from vesper.model.dropout import SeededDropout


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
