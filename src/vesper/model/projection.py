"""Many edge-free features as a few: their leading principal components.

    projected[v] = (scaled x[v] - mean) Q,     Q = the `width` directions of largest variance

Q comes from subspace iteration, Q <- orth(X^T X Q), on evenly spaced rows X from a fixed start: it
repeats bit for bit, reads features only, and costs little for any number of features.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.graph.features import Features
from vesper.model.scaling import Scaling

SAMPLE = 1 << 14
"""Rows from which directions are learned."""
ITERATIONS, SPARE = 12, 8
"""Directions beyond those wanted make the iteration converge sooner."""
ROWS = 1 << 14


def project(features: Features, *, width: int) -> NDArray[np.float32]:
    """Give at most `width` components of all nodes; (num_nodes, min(width, 2 num_features)).

    | features | result |
    | --- | --- |
    | none, or all constant | no columns, or zeros |
    """
    if features.shape[1] == 0:
        return np.zeros((len(features), 0), dtype=np.float32)
    scaling = Scaling(features)
    sample = _scaled(features[:: max(1, len(features) // SAMPLE)], scaling)
    mean = sample.mean(axis=0)  # (2 num_features,)
    directions = leading(sample - mean, width)  # (2 num_features, width)
    out = np.empty((len(features), directions.shape[1]), dtype=np.float32)
    for start in range(0, len(features), ROWS):
        out[start : start + ROWS] = (
            _scaled(features[start : start + ROWS], scaling) - mean
        ) @ directions
    return out


def _scaled(rows: Features, scaling: Scaling) -> NDArray[np.float32]:
    values: NDArray[np.float32] = scaling(torch.from_numpy(rows.astype(np.float32))).numpy()
    return values


def leading(rows: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Find Q of the rows, largest variance first: (num_features, at most width)."""
    generator = np.random.default_rng(0)
    num_features = rows.shape[1]
    basis = generator.normal(size=(num_features, min(width + SPARE, num_features)))
    basis = np.linalg.qr(basis)[0].astype(np.float32)
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    _, _, turned = np.linalg.svd(rows @ basis, full_matrices=False)  # largest variance first
    found: NDArray[np.float32] = (basis @ turned.T)[:, :width]
    return found
