"""VFGNN as the paper analyses it: L layers of message passing, noise on the output alone.

h^(0)  = Encoder(x);    h^(l) = ReLU(W^(l) gather(h^(l-1))),  l < L
output = norm normalize(W^(L) gather(h^(L-1))) + noise
"""

from torch import Tensor, nn
from torch.nn import functional as F

from vesper.mechanism.sampled.layers import SampledBatch
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.model.encoder import initialize
from vesper.model.rows import normalized
from vesper.model.spectral import UnitWeight


class VfgnnExtractor(nn.Module):
    """Encoder and L layers; gives the roots' noisy output.

    Args:
        encoder: edge-free inputs to encodings.
        width: of encodings.
        num_layers: L.
        norm: C, length of every output row before the noise.
        exact: operator norm by singular values instead of one power iteration.
        noise: on the output; None for no noise and no privacy.
        seed: of all weights.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        width: int,
        num_layers: int,
        norm: float,
        exact: bool,
        noise: LayerNoise | None,
        seed: int,
    ) -> None:
        super().__init__()
        self.encoder, self._norm, self._noise = encoder, norm, noise
        self.unit_weights = nn.ModuleList(
            UnitWeight(width, width, exact=exact, seed=seed + layer) for layer in range(num_layers)
        )
        initialize(self, seed)

    def forward(self, inputs: Tensor, batch: SampledBatch) -> Tensor:
        """(num_nodes, num_inputs) of the batch's nodes -> (B, width, 1)."""
        rows: Tensor = self.encoder(inputs)
        *inner, last = [
            (unit_weight, layer)
            for unit_weight, layer in zip(self.unit_weights, batch.layers, strict=True)
        ]
        for unit_weight, layer in inner:
            rows = F.relu(F.linear(layer.gather(rows), unit_weight()))
        unit_weight, layer = last
        output = self._norm * normalized(F.linear(layer.gather(rows), unit_weight()))
        if self._noise is not None:
            output = self._noise.perturb(output)
        return output.unsqueeze(2)
