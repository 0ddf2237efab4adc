"""Inputs that differ from one base row in few columns, as words and categories do.

    x[v]       = base + deviations[v]                    base: every feature at its median
    W x[v] + b = (W base + b) + sum over k of deviations[v, k] W[:, k]

A linear layer then reads only the few columns in which a node differs. Values equal those of the
dense product up to rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.graph.features import Features
from vesper.mechanism.sampled import Links, links_of, weighted_sum
from vesper.model.feature_scaling import KNOTS, ROWS_PER_BLOCK, FeatureScaling, Inputs

MAX_DIFFERING_SHARE = 1 / 16
"""Share of entries that differ from the median above which the dense product is as fast."""
MAX_ENTRIES = 1 << 28
"""Most entries that may differ; they take 2 GiB. Above, dense inputs are recomputed each time."""
TEST_ROWS = 1 << 10
"""Rows that are inspected for sparsity; evenly spaced, so that nothing is random."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse inputs of some nodes.

    Args:
        base: (1, num_inputs), the values of most entries.
        deviations: (B, num_inputs), sparse; receivers are nodes, senders are columns.
    """

    base: Tensor
    deviations: Links

    def __len__(self) -> int:
        """Return the number of nodes."""
        return self.deviations.num_receivers

    def apply_linear(self, linear: nn.Linear) -> Tensor:
        """Return W x + b, with gradients for W and b: (B, outputs)."""
        at_base = F.linear(self.base, linear.weight, linear.bias)  # (1, outputs)
        return at_base + weighted_sum(linear.weight.T.contiguous(), self.deviations)


class SparseInputs:
    """Scaled features of nodes, as in `Inputs` but sparse; computed when first needed.

    Args:
        features: (num_nodes, num_features), raw; few entries of a row differ from the median.
        scaling: how to scale them.
    """

    def __init__(self, features: Features, scaling: FeatureScaling) -> None:
        self.features, self.scaling, self.width = features, scaling, scaling.width
        self.num_nodes = len(features)
        self._cache: SparseRows | None = None

    def rows(self, nodes: NDArray[np.int64]) -> SparseRows:
        """Return the scaled features of the nodes: (B, scaling.width)."""
        if self._cache is None:
            self._cache = self._make()
        return SparseRows(self._cache.base, self._cache.deviations.for_receivers(nodes))

    def _make(self) -> SparseRows:
        """Collect the entries that differ, one block of rows at a time."""
        base: Tensor = self.scaling(median_of(self.scaling)[None])  # (1, width)
        return SparseRows(base, links_of(self._differing(base), self.width))

    def _differing(self, base: Tensor) -> Iterator[NDArray[np.float32]]:
        for start in range(0, self.num_nodes, ROWS_PER_BLOCK):
            block = self.features[start : start + ROWS_PER_BLOCK].astype(np.float32)
            scaled: Tensor = self.scaling(torch.from_numpy(block))  # (rows, width)
            yield (scaled - base).numpy()


InputRows = Tensor | SparseRows
"""Inputs of nodes, (B, num_inputs), dense or sparse."""


def inputs_of(
    features: Features, scaling: FeatureScaling, *, sparse: bool
) -> Inputs | SparseInputs:
    """Make the inputs; sparse if `sparse` allows it and few entries differ from the median."""
    if sparse and is_sparse(features, scaling):
        return SparseInputs(features, scaling)
    return Inputs(features, scaling)


def is_sparse(features: Features, scaling: FeatureScaling) -> bool:
    """Whether few entries differ from the median, and few enough to be stored."""
    rows = np.asarray(features[:: max(1, len(features) // TEST_ROWS)], dtype=np.float32)
    share = float(np.mean(rows != median_of(scaling).numpy()))
    entries = len(features) * scaling.width * share
    return share <= MAX_DIFFERING_SHARE and entries <= MAX_ENTRIES


def median_of(scaling: FeatureScaling) -> Tensor:
    """Return the median value of each feature: (num_features,)."""
    return scaling.knots[:, KNOTS // 2]
