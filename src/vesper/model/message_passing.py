"""Extractors on sampled layers: the paper's perturbed message passing (PMP), and VFGNN.

PMP, Algorithms 1 and 2 of the paper:

    h^(0) = normalize(Encoder(x))
    for l = 1 .. L:
        value^(l)_v = W^(l) (self_weight h^(l-1)_v + sum over u in N(v) of edge_weight h^(l-1)_u)
                      or, where truncated and d_v < D_min,   W_tr^(l) h^(l-1)_v + b_tr^(l)
        h^(l)_v     = normalize(ReLU(value^(l)_v + noise)),  normalize(0) = 0

VFGNN as the paper analyses it, with noise on the output alone:

    h^(0)  = Encoder(x);    h^(l) = ReLU(W^(l) gather(h^(l-1))),  l < L
    output = norm normalize(W^(L) gather(h^(L-1))) + noise

Weights of operator norm 1:

    estimated:  v = normalize(W^T u),  u = normalize(W v);  W / (u^T W v)     one step per batch
    exact:      W / ||W||_2

W_1 = W_2 = W has operator norm 1. As W is linear it is applied after the sum, which has fewer rows.
Algorithm 2 is printed with noise on the un-truncated symbol, but the branch value is what must be
perturbed, and here it is. Gradients pass through edges: nothing is certified. One power iteration
is what the paper prints (Miyato et al.). It estimates the norm from below, so the weight's norm
exceeds 1 until u has settled: it is no bound, and nothing certified rests on it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.mechanism.sampled import LayerNoise, SampledBatch, SampledLayer
from vesper.model.encoders import initialize
from vesper.model.sparse_inputs import InputRows
from vesper.model.unit_rows import rectified_unit_rows, unit_rows


class UnitWeight(nn.Module):
    """An (outputs, inputs) weight, divided by its operator norm where it is used.

    Args:
        inputs: columns.
        outputs: rows.
        exact: use singular values, not one power iteration per training step.
        bounded: divide at all; without it no sensitivity holds.
        seed: seed of the first u.
    """

    u: Tensor

    def __init__(
        self, inputs: int, outputs: int, *, exact: bool, seed: int, bounded: bool = True
    ) -> None:
        super().__init__()
        self.exact, self.bounded = exact, bounded
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        first = torch.randn(outputs, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("u", F.normalize(first, dim=0))  # (outputs,)

    def forward(self) -> Tensor:
        """Return the weight: (outputs, inputs)."""
        if not self.bounded:
            return self.weight
        if self.exact:
            norm: Tensor = torch.linalg.matrix_norm(self.weight, ord=2)
            return self.weight / norm
        with torch.no_grad():
            v = F.normalize(self.weight.T @ self.u, dim=0)  # (inputs,)
            u = F.normalize(self.weight @ v, dim=0)  # (outputs,)
            if self.training:
                self.u = u
        return self.weight / torch.dot(u, self.weight @ v)


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """Specification of the layers of an extractor."""

    width: int
    """Width of rows, in and out."""
    num_layers: int
    """Number of layers, L."""
    exact: bool
    """Whether operator norms come from singular values, not one power iteration."""
    noise: LayerNoise | None
    """Noise of the layers; None for no noise and no privacy."""
    seed: int
    """Seed of all weights of the extractor, and of the first power iterations."""
    bounded: bool = True
    """Whether weights are divided by their operator norm."""

    def unit_weights(self) -> Iterator[UnitWeight]:
        """Make one weight per layer, not yet initialised."""
        for layer in range(self.num_layers):
            yield UnitWeight(
                self.width,
                self.width,
                exact=self.exact,
                seed=self.seed + layer,
                bounded=self.bounded,
            )


class PmpLayer(nn.Module):
    """One layer: gather, map, perturb, ReLU, normalise.

    Args:
        unit_weight: W.
        branch: W_tr, b_tr of receivers of low degree (Algorithm 2), if they have their own branch.
    """

    def __init__(self, unit_weight: UnitWeight, branch: nn.Linear | None) -> None:
        super().__init__()
        self.unit_weight, self.branch = unit_weight, branch

    def pre_activation(self, rows: Tensor, layer: SampledLayer) -> Tensor:
        """Compute what is perturbed: (num_senders, width) to (num_receivers, width)."""
        values = F.linear(layer.gather(rows), self.unit_weight())
        if self.branch is None or layer.branch_receivers is None:
            return values
        return values.index_copy(
            0, layer.branch_receivers, self.branch(rows.index_select(0, layer.branch_receivers))
        )

    def forward(self, rows: Tensor, layer: SampledLayer, noise: LayerNoise | None) -> Tensor:
        """(num_senders, width) to (num_receivers, width)."""
        values = self.pre_activation(rows, layer)
        if noise is not None:
            values = noise.perturb(values)
        return rectified_unit_rows(values)


class PerturbedMessagePassing(nn.Module):
    """Encoder and L layers, to the roots' embeddings of all layers.

    Args:
        encoder: edge-free inputs to encodings.
        layers: number, width and noise, which is added to every layer.
        truncated: whether receivers of low degree have their own branch.
    """

    def __init__(self, encoder: nn.Module, layers: LayerSpec, *, truncated: bool) -> None:
        super().__init__()
        self.encoder, self.noise = encoder, layers.noise
        self.layers = nn.ModuleList(
            PmpLayer(unit_weight, nn.Linear(layers.width, layers.width) if truncated else None)
            for unit_weight in layers.unit_weights()
        )
        initialize(self, layers.seed)

    def forward(self, inputs: InputRows, batch: SampledBatch) -> Tensor:
        """(num_nodes, num_inputs) of the batch's nodes -> (B, width, L)."""
        return self.propagate(self.encode(inputs), batch)

    def encode(self, inputs: InputRows) -> Tensor:
        """h^(0), edge-free: (num_nodes, num_inputs) -> (num_nodes, width)."""
        return unit_rows(self.encoder(inputs))

    def propagate(self, rows: Tensor, batch: SampledBatch) -> Tensor:
        """(num_nodes, width) encodings of the batch's nodes -> (B, width, L)."""
        roots = []
        for module, layer in zip(self.layers, batch.layers, strict=True):
            rows = module(rows, layer, self.noise)  # h^(l)
            roots.append(rows[: batch.num_roots])
        return torch.stack(roots, dim=2)


class VfgnnExtractor(nn.Module):
    """Encoder and L layers, to the roots' noisy output.

    Args:
        encoder: edge-free inputs to encodings.
        layers: number, width and noise, which is added to the output alone.
        norm: C, length of every output row before the noise.
    """

    def __init__(self, encoder: nn.Module, layers: LayerSpec, *, norm: float) -> None:
        super().__init__()
        self.encoder, self._norm, self.noise = encoder, norm, layers.noise
        self.unit_weights = nn.ModuleList(layers.unit_weights())
        initialize(self, layers.seed)

    def forward(self, inputs: InputRows, batch: SampledBatch) -> Tensor:
        """(num_nodes, num_inputs) of the batch's nodes -> (B, width, 1)."""
        return self.propagate(self.encode(inputs), batch)

    def encode(self, inputs: InputRows) -> Tensor:
        """h^(0), edge-free: (num_nodes, num_inputs) -> (num_nodes, width)."""
        rows: Tensor = self.encoder(inputs)
        return rows

    def propagate(self, rows: Tensor, batch: SampledBatch) -> Tensor:
        """(num_nodes, width) encodings of the batch's nodes -> (B, width, 1)."""
        *inner, last = [
            (unit_weight, layer)
            for unit_weight, layer in zip(self.unit_weights, batch.layers, strict=True)
        ]
        for unit_weight, layer in inner:
            rows = F.relu(F.linear(layer.gather(rows), unit_weight()))
        unit_weight, layer = last
        output = self._norm * unit_rows(F.linear(layer.gather(rows), unit_weight()))
        if self.noise is not None:
            output = self.noise.perturb(output)
        return output.unsqueeze(2)
