"""Inputs that differ from one row in few columns, as words and categories do, kept as such.

    x[v]       = base + deviations[v]                    base: every feature at its median
    W x[v] + b = (W base + b) + sum over k of deviations[v, k] W[:, k]

A linear layer then reads the few columns in which a node differs and not all of them. Values are
those of the dense product but for rounding.
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
"""Of entries that differ from the median; above, the dense product is as fast."""
MAX_ENTRIES = 1 << 28
"""That differ, in all: they take 2 GiB. Above, dense inputs are made anew each time."""
TEST_ROWS = 1 << 10
"""Rows that are looked at to tell; evenly spaced, so that nothing is random."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Inputs of some nodes.

    Args:
        base: (1, num_inputs), what most entries are.
        deviations: (B, num_inputs) sparse; a receiver is a node, a sender is a column.
    """

    base: Tensor
    deviations: Links

    def __len__(self) -> int:
        """How many nodes."""
        return self.deviations.num_receivers

    def apply_linear(self, linear: nn.Linear) -> Tensor:
        """W x + b, with gradients by W and b: (B, outputs)."""
        at_base = F.linear(self.base, linear.weight, linear.bias)  # (1, outputs)
        return at_base + weighted_sum(linear.weight.T.contiguous(), self.deviations)


class SparseInputs:
    """Scaled features of nodes, as `Inputs` has them; nothing is made before it is asked for.

    Args:
        features: (num_nodes, num_features), raw; few entries of a row differ from the median.
        scaling: how to scale them.
    """

    def __init__(self, features: Features, scaling: FeatureScaling) -> None:
        self.features, self.scaling, self.width = features, scaling, scaling.width
        self.num_nodes = len(features)
        self._cache: SparseRows | None = None

    def rows(self, nodes: NDArray[np.int64]) -> SparseRows:
        """Give the rows of the nodes: (B, scaling.width)."""
        if self._cache is None:
            self._cache = self._make()
        return SparseRows(self._cache.base, self._cache.deviations.for_receivers(nodes))

    def _make(self) -> SparseRows:
        """Find what differs, a block of rows at a time."""
        base: Tensor = self.scaling(median_of(self.scaling)[None])  # (1, width)
        return SparseRows(base, links_of(self._differing(base), self.width))

    def _differing(self, base: Tensor) -> Iterator[NDArray[np.float32]]:
        for start in range(0, self.num_nodes, ROWS_PER_BLOCK):
            block = self.features[start : start + ROWS_PER_BLOCK].astype(np.float32)
            scaled: Tensor = self.scaling(torch.from_numpy(block))  # (rows, width)
            yield (scaled - base).numpy()


InputRows = Tensor | SparseRows
"""(B, num_inputs), one way or the other."""


def inputs_of(
    features: Features, scaling: FeatureScaling, *, sparse: bool
) -> Inputs | SparseInputs:
    """Give the inputs; as sparse rows where they are and whoever reads them takes those."""
    if sparse and is_sparse(features, scaling):
        return SparseInputs(features, scaling)
    return Inputs(features, scaling)


def is_sparse(features: Features, scaling: FeatureScaling) -> bool:
    """Whether few entries differ from the median, and few enough to be kept."""
    rows = np.asarray(features[:: max(1, len(features) // TEST_ROWS)], dtype=np.float32)
    share = float(np.mean(rows != median_of(scaling).numpy()))
    entries = len(features) * scaling.width * share
    return share <= MAX_DIFFERING_SHARE and entries <= MAX_ENTRIES


def median_of(scaling: FeatureScaling) -> Tensor:
    """The value that the middle node has: (num_features,)."""
    return scaling.knots[:, KNOTS // 2]
