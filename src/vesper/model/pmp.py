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
from vesper.model.layers import Layers
from vesper.model.rows import normalized, rectified
from vesper.model.sparse_inputs import InputRows
from vesper.model.spectral import UnitWeight


class PmpLayer(nn.Module):
    """One layer: gather, map, perturb, ReLU, normalise.

    Args:
        unit_weight: W.
        branch: W_tr, b_tr, where receivers of low degree have a branch of their own (Algorithm 2).
    """

    def __init__(self, unit_weight: UnitWeight, branch: nn.Linear | None) -> None:
        super().__init__()
        self.unit_weight, self.branch = unit_weight, branch

    def value(self, rows: Tensor, layer: SampledLayer) -> Tensor:
        """What is perturbed: (num_senders, width) to (num_receivers, width)."""
        values = F.linear(layer.gather(rows), self.unit_weight())
        if self.branch is None or layer.blocked is None:
            return values
        return values.index_copy(0, layer.blocked, self.branch(rows.index_select(0, layer.blocked)))

    def forward(self, rows: Tensor, layer: SampledLayer, noise: LayerNoise | None) -> Tensor:
        """(num_senders, width) to (num_receivers, width)."""
        values = self.value(rows, layer)
        if noise is not None:
            values = noise.perturb(values)
        return rectified(values)


class PerturbedMessagePassing(nn.Module):
    """Encoder and L layers; gives the roots' embeddings of all layers.

    Args:
        encoder: edge-free inputs to encodings.
        layers: how many, how wide; noise is added to every one.
        truncated: whether receivers of low degree have a branch of their own.
    """

    def __init__(self, encoder: nn.Module, layers: Layers, *, truncated: bool) -> None:
        super().__init__()
        self.encoder, self.noise = encoder, layers.noise
        self.layers = nn.ModuleList(
            PmpLayer(unit_weight, nn.Linear(layers.width, layers.width) if truncated else None)
            for unit_weight in layers.unit_weights()
        )
        initialize(self, layers.seed)

    def forward(self, inputs: InputRows, batch: SampledBatch) -> Tensor:
        """(num_nodes, num_inputs) of the batch's nodes -> (B, width, L)."""
        return self.passed_on(self.encode(inputs), batch)

    def encode(self, inputs: InputRows) -> Tensor:
        """h^(0), edge-free: (num_nodes, num_inputs) -> (num_nodes, width)."""
        return normalized(self.encoder(inputs))

    def passed_on(self, rows: Tensor, batch: SampledBatch) -> Tensor:
        """(num_nodes, width) encodings of the batch's nodes -> (B, width, L)."""
        roots = []
        for module, layer in zip(self.layers, batch.layers, strict=True):
            rows = module(rows, layer, self.noise)  # h^(l)
            roots.append(rows[: batch.num_roots])
        return torch.stack(roots, dim=2)
