"""Perturbed message passing (PMP): the extractor of the paper's plan, Algorithms 1 and 2.

    h^(0) = normalize(Encoder(x))
    for l = 1 .. L:
        value^(l)_v = W^(l) (self_weight h^(l-1)_v + sum over u in N(v) of edge_weight h^(l-1)_u)
                      or, where truncated and d_v < D_min,   W_tr^(l) h^(l-1)_v + b_tr^(l)
        h^(l)_v     = normalize(ReLU(value^(l)_v + noise)),  normalize(0) = 0

W_1 = W_2 = W has operator norm 1 (`spectral`). As W is linear it is applied after the sum, which
has fewer rows. Algorithm 2 is printed with noise on the un-truncated symbol; it is the branch value
that must be perturbed, and here it is. Gradients pass through edges: nothing is certified.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.mechanism.sampled.layers import SampledBatch, SampledLayer
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.model.encoder import initialize
from vesper.model.rows import normalized
from vesper.model.spectral import UnitWeight


class PmpLayer(nn.Module):
    """One layer: gather, map, perturb, ReLU, normalise.

    Args:
        width: of rows, in and out.
        truncated: whether receivers of low degree have a branch of their own (Algorithm 2).
        exact: operator norm by singular values instead of one power iteration.
        seed: of the first power iteration.
    """

    def __init__(self, width: int, *, truncated: bool, exact: bool, seed: int) -> None:
        super().__init__()
        self.unit_weight = UnitWeight(width, width, exact=exact, seed=seed)
        self.branch = nn.Linear(width, width) if truncated else None  # W_tr, b_tr

    def value(self, rows: Tensor, layer: SampledLayer) -> Tensor:
        """What is perturbed: (num_senders, width) to (num_receivers, width)."""
        values = F.linear(layer.gather(rows), self.unit_weight())
        if self.branch is None or layer.blocked is None:
            return values
        return values.index_copy(0, layer.blocked, self.branch(rows[layer.blocked]))

    def forward(self, rows: Tensor, layer: SampledLayer, noise: LayerNoise | None) -> Tensor:
        """(num_senders, width) to (num_receivers, width)."""
        values = self.value(rows, layer)
        if noise is not None:
            values = noise.perturb(values)
        return normalized(F.relu(values))


class PerturbedMessagePassing(nn.Module):
    """Encoder and L layers; gives the roots' embeddings of all layers.

    Args:
        encoder: edge-free inputs to encodings.
        width: of encodings.
        num_layers: L.
        truncated: as in `PmpLayer`.
        exact: as in `PmpLayer`.
        noise: on every layer; None for no noise and no privacy.
        seed: of all weights.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        width: int,
        num_layers: int,
        truncated: bool,
        exact: bool,
        noise: LayerNoise | None,
        seed: int,
    ) -> None:
        super().__init__()
        self.encoder, self._noise = encoder, noise
        self.layers = nn.ModuleList(
            PmpLayer(width, truncated=truncated, exact=exact, seed=seed + layer)
            for layer in range(num_layers)
        )
        initialize(self, seed)

    def forward(self, inputs: Tensor, batch: SampledBatch) -> Tensor:
        """(num_nodes, num_inputs) of the batch's nodes -> (B, width, L)."""
        rows = normalized(self.encoder(inputs))  # h^(0)
        roots = []
        for module, layer in zip(self.layers, batch.layers, strict=True):
            rows = module(rows, layer, self._noise)  # h^(l)
            roots.append(rows[: batch.num_roots])
        return torch.stack(roots, dim=2)
