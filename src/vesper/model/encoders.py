"""Which encoder: by name, or anybody's own.

    inputs of a sequence encoder:  (B, views x steps x step width) -> (B, steps, views x step width)

`Scaling` gives every feature in several views, so a step has them all. An encoder of one's own is
any module from (B, num_inputs) to (B, width) that sees no edge.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from vesper.errors import InputError
from vesper.model.encoder import MlpEncoder
from vesper.model.gru_encoder import GruEncoder
from vesper.model.normalized_encoder import NormalizedEncoder
from vesper.model.transformer_encoder import TransformerEncoder


@dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """What an encoder has to fit."""

    num_inputs: int
    """Columns of the inputs, a multiple of `num_features`."""
    num_features: int
    """Columns of the node table: steps x step width, step after step."""
    steps: int | None
    """Time steps; only sequence encoders ask for it."""
    width: int
    """Of the encodings."""
    dropout: float
    """While training."""
    seed: int
    """Of the masks; weights are drawn by whoever owns the module."""
    normalized: bool = False
    """Whether a perceptron normalises its hidden layers; those of sequences do as they do."""


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
            f"say how many there are by the setting 'steps'"
        )
    sequence = makers[kind](
        shape.num_inputs // steps, steps=steps, width=width, dropout=dropout, seed=seed
    )
    views = shape.num_inputs // shape.num_features
    return SequenceEncoder(sequence, views=views, steps=steps, width=width)


def takes_sparse_rows(encoder: nn.Module) -> bool:
    """Whether `SparseRows` do for inputs."""
    return isinstance(encoder, MlpEncoder) and encoder.takes_sparse_rows


class SequenceEncoder(nn.Module):
    """Rows of features as sequences, for an encoder of sequences."""

    def __init__(self, sequence: nn.Module, *, views: int, steps: int, width: int) -> None:
        super().__init__()
        self.sequence, self.width = sequence, width
        self._views, self._steps = views, steps

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, views * steps * step_width) -> (B, width)."""
        by_view = inputs.reshape(len(inputs), self._views, self._steps, -1)
        encodings: Tensor = self.sequence(by_view.transpose(1, 2).flatten(start_dim=2))
        return encodings
