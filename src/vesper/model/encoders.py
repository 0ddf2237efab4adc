"""Encoders of edge-free features, by name or custom.

    mlp, plain:        encoding = ReLU(W_2 drop(ReLU(W_1 drop(x) + b_1)) + b_2)
    mlp, normalised:   encoding = ReLU(Norm(W_2 Drop(ReLU(Norm(W_1 drop(x) + b_1))) + b_2))
                       Norm: LayerNorm;  drop leaves out p / 2 of the inputs, Drop 1 - (1 - p)^2 of
                       the hidden units, p: `dropout`
    gru, transformer:  (B, views x steps x step width) -> (B, steps, views x step width), then as in
                       `sequence_encoders`

`FeatureScaling` gives every feature in several views, and each step contains all of them. A custom
encoder is any module from (B, num_inputs) to (B, width) that sees no edge.

The normalised perceptron belongs to the certified plan. Rows are normalised on their own, so an
encoding depends on no other node. Hidden units have one scale whatever the features, so more of
them can be dropped; fewer inputs should be, as a feature is not redundant. It is used if features
are not too many: with hundreds of words, heads of later stages did worse on its predictions
(docs/decisions/0017).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vesper.errors import InputError
from vesper.model.custom_encoder import CustomEncoder
from vesper.model.network_layers import RowNorm, SeededDropout
from vesper.model.sequence_encoders import GruEncoder, TransformerEncoder
from vesper.model.sparse_inputs import InputRows, SparseRows


class MlpEncoder(nn.Module):
    """Plain two-layer perceptron."""

    def __init__(self, num_inputs: int, *, width: int, dropout: float, seed: int) -> None:
        super().__init__()
        self.width = width
        self.takes_sparse_rows = dropout == 0
        """Not with dropout: masks also drop entries that equal the base row."""
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
        rows = inputs.apply_linear(first)  # (B, width)
        for layer in rest:
            rows = layer(rows)
        return rows


def initialize(module: nn.Module, seed: int) -> None:
    """Draw every weight from one seeded generator: uniform within 1 / sqrt(inputs).

    Normalisation layers start with weight 1 and bias 0; custom encoders keep the weights that they
    came with.
    """
    generator = torch.Generator().manual_seed(seed)
    parts = list(module.modules())
    own = [part for part in parts if isinstance(part, CustomEncoder)]
    custom_weights = {weight for part in own for weight in part.parameters()}
    with torch.no_grad():
        for weight in module.parameters():
            if weight in custom_weights:
                continue
            bound = weight.shape[-1] ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
    custom_modules = {inner for part in own for inner in part.modules()}
    for part in parts:
        if isinstance(part, nn.BatchNorm1d | nn.LayerNorm) and part not in custom_modules:
            part.reset_parameters()


NORMALIZED_UP_TO = 256
"""Most features with which the certified plan normalises hidden layers."""


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
    """Whether the certified plan normalises hidden layers, given the number of features.

    >>> normalized_for(128), normalized_for(313)
    (True, False)
    """
    return num_features <= NORMALIZED_UP_TO


@dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """Sizes and settings that an encoder has to fit."""

    num_inputs: int
    """Columns of the inputs, a multiple of `num_features`."""
    num_features: int
    """Columns of the node table: steps x step width, step after step."""
    steps: int | None
    """Time steps; only sequence encoders need them."""
    width: int
    """Width of the encodings."""
    dropout: float
    """Dropout rate while training."""
    seed: int
    """Seed of the masks; weights are drawn by the owner of the module."""
    normalized: bool = False
    """Whether a perceptron normalises its hidden layers; sequence encoders ignore this."""


EncoderFactory = Callable[[str, EncoderShape], nn.Module]
"""(kind, shape) -> a module from (B, num_inputs) to (B, width)."""


def make_encoder(kind: str, shape: EncoderShape) -> nn.Module:
    """Make `mlp`, `gru` or `transformer`.

    Raises:
        InputError: a sequence encoder without a number of steps that divides the features.
    """
    width, dropout, seed = shape.width, shape.dropout, shape.seed
    if kind == "mlp":
        perceptron = NormalizedEncoder if shape.normalized else MlpEncoder
        return perceptron(shape.num_inputs, width=width, dropout=dropout, seed=seed)
    makers: dict[str, Callable[..., nn.Module]] = {
        "gru": GruEncoder,
        "transformer": TransformerEncoder,
    }
    if kind not in makers:
        raise InputError(f"encoder: expected mlp, {', '.join(makers)}, got '{kind}'")
    steps = shape.steps
    if steps is None or shape.num_features % steps:
        raise InputError(
            f"steps: expected a divisor of the {shape.num_features} features for encoder '{kind}' "
            f"(they are steps x step width, step after step), got {steps or 'none'}; "
            f"set 'steps' to the number of time steps"
        )
    sequence = makers[kind](
        shape.num_inputs // steps, steps=steps, width=width, dropout=dropout, seed=seed
    )
    views = shape.num_inputs // shape.num_features
    return SequenceEncoder(sequence, views=views, steps=steps, width=width)


def takes_sparse_rows(encoder: nn.Module) -> bool:
    """Whether the encoder accepts `SparseRows`."""
    return isinstance(encoder, MlpEncoder) and encoder.takes_sparse_rows


class SequenceEncoder(nn.Module):
    """Adapter that turns rows of features into sequences for a sequence encoder."""

    def __init__(self, sequence: nn.Module, *, views: int, steps: int, width: int) -> None:
        super().__init__()
        self.sequence, self.width = sequence, width
        self._views, self._steps = views, steps

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, views * steps * step_width) -> (B, width)."""
        by_view = inputs.reshape(len(inputs), self._views, self._steps, -1)
        encodings: Tensor = self.sequence(by_view.transpose(1, 2).flatten(start_dim=2))
        return encodings
