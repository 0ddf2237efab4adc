"""The encoder of the certified plan: edge-free features to encodings, normalised a layer.

    encoding = ReLU(Norm(W_2 Drop(ReLU(Norm(W_1 drop(x) + b_1))) + b_2)),   Norm: LayerNorm

    drop leaves out p / 2 of the inputs, Drop 1 - (1 - p)^2 of the hidden units, p: `dropout`

Rows are normalised by themselves, so an encoding depends on no other node. With hidden units that
have one size whatever the features, more of them can be left out; of inputs fewer should be, for a
feature is there once. It is for features that are not too many, as bins are: with hundreds of words
heads of later stages did worse on its guesses (docs/decisions/0017).
"""

from torch import Tensor, nn

from vesper.model.dropout import SeededDropout
from vesper.model.row_norm import RowNorm

NORMALIZED_UP_TO = 256
"""Features."""


class NormalizedEncoder(nn.Module):
    """Two-layer perceptron with layer normalisation."""

    def __init__(self, num_inputs: int, *, width: int, dropout: float, seed: int) -> None:
        super().__init__()
        self.width = width
        self.layers = nn.Sequential(
            SeededDropout(dropout / 2, seed=seed),
            nn.Linear(num_inputs, width),
            RowNorm(width),
            nn.ReLU(),
            SeededDropout(1 - (1 - dropout) ** 2, seed=seed + 1),
            nn.Linear(width, width),
            RowNorm(width),
            nn.ReLU(),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, num_inputs) -> (B, width)."""
        encodings: Tensor = self.layers(inputs)
        return encodings


def normalized_for(num_features: int) -> bool:
    """Whether the certified plan normalises, by how many features there are.

    >>> normalized_for(128), normalized_for(313)
    (True, False)
    """
    return num_features <= NORMALIZED_UP_TO
