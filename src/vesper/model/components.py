"""Where nodes lie along the directions in which features differ most.

    along[v] = unit(standardised x[v] @ Q)       Q: as in `projection`, at most COMPONENTS columns

Unlike a projection it can be kept to on another graph: Q is all there is to know. Few features are
taken as they are. No edge is read.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vesper.graph.features import Features
from vesper.model.projection import ROWS, SAMPLE, leading
from vesper.model.scaling import Inputs

COMPONENTS = 16


def components_of(inputs: Inputs) -> Tensor:
    """Find Q: (num_features, at most COMPONENTS)."""
    num_features = inputs.features.shape[1]
    if num_features <= COMPONENTS:
        return torch.eye(num_features)
    sample = inputs.features[:: max(1, inputs.num_nodes // SAMPLE)]
    return torch.from_numpy(leading(_standard(inputs, sample).numpy(), COMPONENTS))


def rows_along(inputs: Inputs, components: Tensor) -> Tensor:
    """(num_nodes, components), rows of norm 1; 0 where a node is like the mean of all."""
    rows = torch.empty(inputs.num_nodes, components.shape[1])
    for start in range(0, inputs.num_nodes, ROWS):
        block = _standard(inputs, inputs.features[start : start + ROWS])
        rows[start : start + ROWS] = F.normalize(block @ components, dim=1, eps=1e-12)
    return rows


def _standard(inputs: Inputs, features: Features) -> Tensor:
    return inputs.scaling.standard(torch.from_numpy(features.astype(np.float32)))
