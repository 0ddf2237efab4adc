"""VFGNN as the paper analyses it: L layers of message passing, noise on the output alone.

h^(0)  = Encoder(x);    h^(l) = ReLU(W^(l) gather(h^(l-1))),  l < L
output = norm normalize(W^(L) gather(h^(L-1))) + noise
"""

from torch import Tensor, nn
from torch.nn import functional as F

from vesper.mechanism.sampled.layers import SampledBatch
from vesper.model.encoder import initialize
from vesper.model.layers import Layers
from vesper.model.rows import normalized
from vesper.model.sparse_inputs import InputRows


class VfgnnExtractor(nn.Module):
    """Encoder and L layers; gives the roots' noisy output.

    Args:
        encoder: edge-free inputs to encodings.
        layers: how many, how wide; noise is added to the output alone.
        norm: C, length of every output row before the noise.
    """

    def __init__(self, encoder: nn.Module, layers: Layers, *, norm: float) -> None:
        super().__init__()
        self.encoder, self._norm, self.noise = encoder, norm, layers.noise
        self.unit_weights = nn.ModuleList(layers.unit_weights())
        initialize(self, layers.seed)

    def forward(self, inputs: InputRows, batch: SampledBatch) -> Tensor:
        """(num_nodes, num_inputs) of the batch's nodes -> (B, width, 1)."""
        return self.passed_on(self.encode(inputs), batch)

    def encode(self, inputs: InputRows) -> Tensor:
        """h^(0), edge-free: (num_nodes, num_inputs) -> (num_nodes, width)."""
        rows: Tensor = self.encoder(inputs)
        return rows

    def passed_on(self, rows: Tensor, batch: SampledBatch) -> Tensor:
        """(num_nodes, width) encodings of the batch's nodes -> (B, width, 1)."""
        *inner, last = [
            (unit_weight, layer)
            for unit_weight, layer in zip(self.unit_weights, batch.layers, strict=True)
        ]
        for unit_weight, layer in inner:
            rows = F.relu(F.linear(layer.gather(rows), unit_weight()))
        unit_weight, layer = last
        output = self._norm * normalized(F.linear(layer.gather(rows), unit_weight()))
        if self.noise is not None:
            output = self.noise.perturb(output)
        return output.unsqueeze(2)
