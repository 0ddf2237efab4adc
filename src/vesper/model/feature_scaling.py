"""Features scaled for a network, from edge-free data only.

    scaled[v, k] = clamp((x[v, k] - mean[k]) / scale[k], -4, 4)
    ranked[v, k] = probit of the share of nodes with a smaller value       (ties count half)
    binned[v, k] = position of x[v, k] within each of 16 equally filled bins, in [-1, 1]

The first preserves distances, the second is robust to heavy tails, the third lets a perceptron bend
where a tree would split. Bins are optional: the certified plan uses them where features are few
(many features are usually words, which have two values); other encoders overfit on them
(docs/decisions/0005).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.features import Features
from vesper.parallel import pool
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.pool import Work, finish, take

LIMIT = 4.0
KNOTS = 256
BINS = 16
BINNED_UP_TO = 64
"""Number of features above which there are no bins."""
SAMPLE_ROWS = 1 << 17
"""Rows from which ranks are learned; evenly spaced, so that nothing is random."""
ROWS_PER_BLOCK = 1 << 14
MAX_BYTES = 1 << 31
MIN_BIN_WIDTH = 1e-30
"""Width that an empty bin is given, to avoid division by 0."""
ROWS_PER_PIECE = 1 << 10
"""Rows that a thread takes at a time."""

Floats = NDArray[np.float32]


class FeatureScaling(nn.Module):
    """Scaling of raw features: (B, num_features) -> (B, views * num_features), view after view.

    Args:
        features: (num_nodes, num_features), raw.
        bins: number of bins per feature; 0 for none.
        raw: leave features as they are.
    """

    mean: Tensor
    scale: Tensor
    knots: Tensor

    def __init__(self, features: Features, *, bins: int = 0, raw: bool = False) -> None:
        super().__init__()
        self._bins, self._raw = bins, raw
        mean, scale = _moments(features)
        self.register_buffer("mean", torch.from_numpy(mean))  # (num_features,)
        self.register_buffer("scale", torch.from_numpy(scale))  # (num_features,)
        self.register_buffer("knots", torch.from_numpy(_knots(features)))  # (num_features, KNOTS)
        self.width = (1 if raw else 2 + bins) * features.shape[1]

    def fitted_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return what was learned from the features."""
        return {name: buffer.numpy().copy() for name, buffer in self.named_buffers()}

    def load_fitted(self, arrays: dict[str, NDArray[np.float32]]) -> None:
        """Replace what was learned from these features by what was learned from others."""
        self.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})

    def forward(self, features: Tensor) -> Tensor:
        """Scale, rank and bin: (B, num_features) -> (B, views * num_features)."""
        if self._raw:
            return features
        views = [self.standardize(features), self._ranked(features)]
        if self._bins:
            views.append(self._binned(features))
        return torch.cat(views, dim=1)

    def standardize(self, features: Tensor) -> Tensor:
        """Scale only: (B, num_features)."""
        scaled: Tensor = ((features - self.mean) / self.scale).clamp(-LIMIT, LIMIT)
        return scaled

    def _ranked(self, features: Tensor) -> Tensor:
        shares = torch.arange(2 * KNOTS + 1).float() / (2 * KNOTS)  # indexed by twice the rank
        probits: Tensor = torch.special.ndtri(shares.clamp(1e-3, 1 - 1e-3))
        ranked = torch.empty(features.shape)
        look_up_ranks(
            features.contiguous().numpy(),
            self.knots.numpy(),
            probits.numpy(),
            out=ranked.numpy(),
            num_threads=torch.get_num_threads(),
        )
        return ranked  # (B, num_features)

    def _binned(self, features: Tensor) -> Tensor:
        """(B, num_features) -> (B, bins * num_features); -1 below a bin, 1 above, linear inside.

        Where many nodes share a value, bins are empty; empty bins are 0.
        """
        at = torch.linspace(0, KNOTS - 1, self._bins + 1).round().long()
        edges = self.knots[:, at].T  # (bins + 1, num_features)
        widths = edges[1:] - edges[:-1]  # (bins, num_features)
        inside = ((features[:, None] - edges[:-1]) / widths.clamp(min=MIN_BIN_WIDTH)).clamp(0, 1)
        binned: Tensor = (2 * inside - 1) * (widths > 0)  # (B, bins, num_features)
        return binned.flatten(start_dim=1)


def bins_for(num_features: int) -> int:
    """Return the number of bins per feature, given the number of features.

    >>> bins_for(21), bins_for(313)
    (16, 0)
    """
    return BINS if num_features <= BINNED_UP_TO else 0


def _moments(features: Features) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each feature over all nodes; 1 for a constant one."""
    mean = np.asarray(np.mean(features, axis=0, dtype=np.float64))  # (num_features,)
    square = np.zeros_like(mean)
    for start in range(0, len(features), ROWS_PER_BLOCK):
        square += np.square(features[start : start + ROWS_PER_BLOCK] - mean).sum(axis=0)
    scale = np.sqrt(square / len(features))
    scale[scale == 0] = 1.0
    return mean.astype(np.float32), scale.astype(np.float32)


def _knots(features: Features) -> NDArray[np.float32]:
    rows = features[:: max(1, len(features) // SAMPLE_ROWS)]
    at = (np.arange(KNOTS) + 0.5) / KNOTS
    knots = np.quantile(np.asarray(rows, dtype=np.float32), at, axis=0, method="nearest")
    return np.ascontiguousarray(knots.T.astype(np.float32))


class Inputs:
    """Scaled features of nodes: cached for all nodes if that takes little memory, else recomputed.

    Nothing is scaled before it is needed, so that `scaling` can still load other fitted values.

    Args:
        features: (num_nodes, num_features), raw.
        scaling: how to scale them.
        max_bytes: above this, nothing is cached.
    """

    def __init__(
        self, features: Features, scaling: FeatureScaling, *, max_bytes: int = MAX_BYTES
    ) -> None:
        self.features, self.scaling, self.width = features, scaling, scaling.width
        self.num_nodes = len(features)
        self._cache: Tensor | None = None
        self._is_cached = 4 * len(features) * scaling.width <= max_bytes

    def rows(self, nodes: NDArray[np.int64]) -> Tensor:
        """Return the scaled features of the nodes: (B, scaling.width)."""
        if not self._is_cached:
            return self._scaled(self.features[nodes])
        if self._cache is None:
            self._cache = torch.empty(self.num_nodes, self.width)  # (num_nodes, width)
            for start in range(0, self.num_nodes, ROWS_PER_BLOCK):
                block = slice(start, start + ROWS_PER_BLOCK)
                self._cache[block] = self._scaled(self.features[block])
        return self._cache.index_select(0, torch.from_numpy(nodes))

    def clear(self) -> None:
        """Drop the cache; it is filled again when needed."""
        self._cache = None

    def _scaled(self, features: Features) -> Tensor:
        scaled: Tensor = self.scaling(torch.from_numpy(features.astype(np.float32)))
        return scaled


def look_up_ranks(
    x: Floats, knots: Floats, table: Floats, *, out: Floats, num_threads: int
) -> None:
    """Write the table entry of each value.

    Args:
        x: (rows, width), finite.
        knots: (width, number of knots), ascending in each row.
        table: (2 x number of knots + 1,), indexed by twice the rank; ties count half.
        out: (rows, width).
        num_threads: most threads to use.
    """
    lowest = (knots == knots[:, :1]).sum(axis=1)  # (width,) knots equal to the smallest
    num_pieces = -(-len(x) // ROWS_PER_PIECE)
    pool.run(_look_up, x, knots, lowest, table, out, num_pieces=num_pieces, num_threads=num_threads)


@cached_njit
def _look_up(
    work: Work,
    thread: int,
    x: Floats,
    knots: Floats,
    lowest: NDArray[np.int64],
    table: Floats,
    out: Floats,
) -> None:
    piece = take(work)
    while piece >= 0:
        for row in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(x))):
            for k in range(x.shape[1]):
                value = x[row, k]
                if value <= knots[k, 0]:  # most values of most words: no search needed
                    rank = lowest[k] if value == knots[k, 0] else 0
                else:
                    below = _count(knots[k], value, up_to=False)
                    rank = 2 * below
                    if below < knots.shape[1] and knots[k, below] == value:
                        rank = below + _count(knots[k], value, up_to=True)
                out[row, k] = table[rank]
        finish(work)
        piece = take(work)


@cached_njit
def _count(knots: Floats, value: np.float32, up_to: bool) -> int:
    """Count the knots below a value, or up to it."""
    low, high = 0, len(knots)
    while low < high:
        middle = (low + high) // 2
        if knots[middle] < value or (up_to and knots[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low
