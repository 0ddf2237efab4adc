"""A perceptron as in the code of GAP and ProGAP: SELU, then batch normalisation, then dropout.

    hidden = Dropout(BatchNorm(SELU(W x + b)))      every layer; the last one stays W x + b if plain

Batch statistics are made of edge-free data and released values only, so they are post-processing.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from vesper.model.batch_norm import BatchNorm
from vesper.model.dropout import SeededDropout


class SeluPerceptron(nn.Module):
    """Layers of the given widths.

    Args:
        widths: of the input, of each layer.
        plain_last: the last layer is linear.
        dropout: while training.
        seed: of the masks; weights are drawn by whoever owns the module.
    """

    def __init__(
        self, widths: Sequence[int], *, plain_last: bool, dropout: float, seed: int
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for k, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
            layers.append(nn.Linear(inputs, outputs))
            if not plain_last or k < len(widths) - 2:
                layers += [
                    nn.SELU(),
                    BatchNorm(outputs),
                    SeededDropout(dropout, seed=seed + k),
                ]
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, widths[0]) -> (B, widths[-1])."""
        outputs: Tensor = self.layers(inputs)
        return outputs
