"""Features as a network likes them, from edge-free data only.

    scaled[v, k] = clamp((x[v, k] - mean[k]) / scale[k], -4, 4)
    ranked[v, k] = probit of the share of nodes with a smaller value       (ties count half)

The first keeps distances, the second stands heavy tails; a perceptron given both is better than
with either on every public set we tried (docs/decisions/0005).
"""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.features import Features

LIMIT = 4.0
KNOTS = 256
SAMPLE = 1 << 17
"""Rows from which ranks are learned; evenly spaced, so that nothing is random."""
ROWS = 1 << 14
MOST_BYTES = 1 << 31


class Scaling(nn.Module):
    """(B, num_features) raw features -> (B, 2 * num_features)."""

    mean: Tensor
    scale: Tensor
    knots: Tensor

    def __init__(self, features: Features) -> None:
        super().__init__()
        mean, scale = _moments(features)
        self.register_buffer("mean", torch.from_numpy(mean))  # (num_features,)
        self.register_buffer("scale", torch.from_numpy(scale))  # (num_features,)
        self.register_buffer("knots", torch.from_numpy(_knots(features)))  # (num_features, KNOTS)
        self.width = 2 * features.shape[1]

    def forward(self, features: Tensor) -> Tensor:
        """Scale and rank."""
        return torch.cat([self.standard(features), self._ranked(features)], dim=1)

    def standard(self, features: Tensor) -> Tensor:
        """Scale only: (B, num_features)."""
        scaled: Tensor = ((features - self.mean) / self.scale).clamp(-LIMIT, LIMIT)
        return scaled

    def _ranked(self, features: Tensor) -> Tensor:
        values = features.T.contiguous()  # (num_features, B)
        below = torch.searchsorted(self.knots, values)
        up_to = torch.searchsorted(self.knots, values, right=True)
        share = (below + up_to).float() / (2 * KNOTS)
        ranked: Tensor = torch.special.ndtri(share.clamp(1e-3, 1 - 1e-3)).T
        return ranked  # (B, num_features)


def _moments(features: Features) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each feature over all nodes; 1 for a constant one."""
    mean = np.asarray(np.mean(features, axis=0, dtype=np.float64))  # (num_features,)
    square = np.zeros_like(mean)
    for start in range(0, len(features), ROWS):
        square += np.square(features[start : start + ROWS] - mean).sum(axis=0)
    scale = np.sqrt(square / len(features))
    scale[scale == 0] = 1.0
    return mean.astype(np.float32), scale.astype(np.float32)


def _knots(features: Features) -> NDArray[np.float32]:
    rows = features[:: max(1, len(features) // SAMPLE)]
    at = (np.arange(KNOTS) + 0.5) / KNOTS
    knots = np.quantile(np.asarray(rows, dtype=np.float32), at, axis=0, method="nearest")
    return np.ascontiguousarray(knots.T.astype(np.float32))


class NodeInputs(Protocol):
    """Where a representation gets the inputs of nodes."""

    def of(self, nodes: NDArray[np.int64]) -> Tensor:
        """Give (B, width)."""


class Inputs:
    """Scaled features of nodes: kept for all nodes when that takes little memory, else made anew.

    Args:
        features: (num_nodes, num_features), raw.
        scaling: how to scale them.
        most_bytes: above this, nothing is kept.
    """

    def __init__(
        self, features: Features, scaling: Scaling, *, most_bytes: int = MOST_BYTES
    ) -> None:
        self._features, self._scaling, self.width = features, scaling, scaling.width
        self._kept: Tensor | None = None
        self._keep = 4 * len(features) * scaling.width <= most_bytes

    def of(self, nodes: NDArray[np.int64]) -> Tensor:
        """Give (B, scaling.width)."""
        if not self._keep:
            return self._scaled(self._features[nodes])
        if self._kept is None:
            starts = range(0, len(self._features), ROWS)
            blocks = [self._scaled(self._features[start : start + ROWS]) for start in starts]
            self._kept = torch.cat(blocks)  # (num_nodes, width)
        return self._kept[torch.from_numpy(nodes)]

    def _scaled(self, features: Features) -> Tensor:
        scaled: Tensor = self._scaling(torch.from_numpy(features.astype(np.float32)))
        return scaled
