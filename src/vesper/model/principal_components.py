"""Principal components of edge-free features, for exports and for the content of messages.

    projected[v] = (scaled x[v] - mean) Q,     Q = the `width` directions of largest variance
    along[v]     = unit(standardised x[v] @ Q),     Q = COMPONENTS such directions; more of them for
                   at most MAX_FEATURES features, if more is expected to be explained with them:
        expected(K)  = E_K r / (r + K)         E_K: share of all variance along the first K
        r            = evidence sum of e_k^2 / E_K     e_k: share along one of them

Q comes from subspace iteration, Q <- orth(X^T X Q), on evenly spaced rows X from a fixed start: it
repeats bit for bit, reads features only, and costs little for any number of features.

With few directions each is strong and easy to detect; many contain more of the features. Where
nearly all directions would be used, the features themselves are used instead. Unlike `projected`,
`along` can be computed on another graph from Q alone. No edge is read.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vesper.graph.features import Features
from vesper.model.feature_scaling import FeatureScaling, Inputs

SAMPLE_ROWS = 1 << 14
"""Rows from which directions are learned."""
ITERATIONS, SPARE_DIRECTIONS = 12, 8
"""Iterations, and spare directions, which make the iteration converge sooner."""
ROWS_PER_BLOCK = 1 << 14


def principal_components(features: Features, *, width: int) -> NDArray[np.float32]:
    """Return at most `width` components of all nodes: (num_nodes, min(width, 2 num_features)).

    | features | result |
    | --- | --- |
    | none, or all constant | no columns, or zeros |
    """
    if features.shape[1] == 0:
        return np.zeros((len(features), 0), dtype=np.float32)
    scaling = FeatureScaling(features)
    sample = _scaled(features[:: max(1, len(features) // SAMPLE_ROWS)], scaling)
    mean = sample.mean(axis=0)  # (2 num_features,)
    directions = principal_directions(sample - mean, width)  # (2 num_features, width)
    out = np.empty((len(features), directions.shape[1]), dtype=np.float32)
    for start in range(0, len(features), ROWS_PER_BLOCK):
        out[start : start + ROWS_PER_BLOCK] = (
            _scaled(features[start : start + ROWS_PER_BLOCK], scaling) - mean
        ) @ directions
    return out


def _scaled(rows: Features, scaling: FeatureScaling) -> NDArray[np.float32]:
    values: NDArray[np.float32] = scaling(torch.from_numpy(rows.astype(np.float32))).numpy()
    return values


def principal_directions(rows: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Find Q of the rows, largest variance first: (num_features, at most width)."""
    generator = np.random.default_rng(0)
    num_features = rows.shape[1]
    basis = generator.normal(size=(num_features, min(width + SPARE_DIRECTIONS, num_features)))
    basis = np.linalg.qr(basis)[0].astype(np.float32)
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    _, _, rotation = np.linalg.svd(rows @ basis, full_matrices=False)  # largest variance first
    components: NDArray[np.float32] = (basis @ rotation.T)[:, :width]
    return components


COMPONENTS = 16
MAX_FEATURES = 64
NEARLY_ALL_SHARE = 0.9
"""Share of the directions from which the features themselves are used."""
MIN_DEVIATIONS = 1.5
"""Deviations from chance that the signal of more than `COMPONENTS` columns is expected to reach."""


def components_of(
    inputs: Inputs, *, evidence: float = 0.0, max_columns: int = COMPONENTS
) -> Tensor:
    """Find Q: (num_features, columns).

    Args:
        inputs: features.
        evidence: squared deviations from chance of one column that explains everything.
        max_columns: most columns; at least `COMPONENTS` are allowed in any case.
    """
    num_features = inputs.features.shape[1]
    if num_features <= COMPONENTS:
        return torch.eye(num_features)
    sample = inputs.features[:: max(1, inputs.num_nodes // SAMPLE_ROWS)]
    rows = _standardized(inputs, sample).numpy()
    if num_features > MAX_FEATURES or max_columns <= COMPONENTS:
        return torch.from_numpy(principal_directions(rows, COMPONENTS))
    directions = principal_directions(rows, num_features)
    variances = np.square(rows @ directions).sum(axis=0, dtype=np.float64)
    width = min(width_for(variances, evidence=evidence), max_columns)
    if NEARLY_ALL_SHARE * num_features <= width and num_features <= max_columns:
        return torch.eye(num_features)  # a single feature may be informative
    return torch.from_numpy(np.ascontiguousarray(directions[:, :width]))


def width_for(variances: NDArray[np.float64], *, evidence: float) -> int:
    """Choose the number of directions, from the variance along each, largest first.

    >>> alike, few = np.ones(40), np.r_[np.ones(20), np.zeros(20)]
    >>> [width_for(alike, evidence=e) for e in (0.0, 200.0, 5000.0, np.inf)]
    [16, 16, 40, 40]
    >>> width_for(few, evidence=5000.0)
    20
    """
    total = variances.sum()
    shares = variances / total if total > 0 else variances
    cumulative_share = np.maximum(np.cumsum(shares), 1e-12)  # E_K
    width = np.arange(1, len(shares) + 1)
    if np.isinf(evidence):
        expected_share = cumulative_share
    else:
        signal_to_noise = evidence * np.cumsum(np.square(shares)) / cumulative_share  # r
        expected_share = np.where(
            signal_to_noise >= MIN_DEVIATIONS * np.sqrt(2 * width),
            cumulative_share * signal_to_noise / (signal_to_noise + width),
            0.0,
        )
    least = COMPONENTS - 1
    # The smallest of those that are nearly as good: columns without variance add nothing.
    best = expected_share[least:].max()
    return least + 1 + int(np.argmax(expected_share[least:] >= best * (1 - 1e-3)))


class ComponentProjection:
    """Coordinates of nodes along Q, computed for some rows at a time.

    Args:
        inputs: features.
        components: Q, (num_features, columns).
    """

    def __init__(self, inputs: Inputs, components: Tensor) -> None:
        self._inputs, self._components = inputs, components

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self._components.shape[1])

    def __call__(self, rows: slice) -> Tensor:
        """Return (B, columns), rows of norm 1; 0 for a node that equals the mean of all."""
        block = _standardized(self._inputs, self._inputs.features[rows])
        return F.normalize(block @ self._components, dim=1, eps=1e-12)


def _standardized(inputs: Inputs, features: Features) -> Tensor:
    return inputs.scaling.standardize(torch.from_numpy(features.astype(np.float32)))
