"""Training nodes that hear as few neighbours as those who will be asked about.

    ratio = mean degree of asked nodes / of training nodes,     as the first hop heard them
    z'    = ratio z + sqrt(1 - ratio^2) N(0, noise_std^2)       of nodes that are not asked about

Heads learn, and are chosen, on training and validation nodes. Where those who will be asked about
have far fewer neighbours (new customers, nodes without an edge), a head has learned to rely on what
they do not hear, and validation praises it. A sum made smaller, with the noise that it lost put
back, is heard as one over fewer neighbours is, so heads learn what such a sum is worth, and a stage
that is worth nothing there is not chosen. Where degrees are alike, or noise hides whether they are,
nothing is changed.

All of it is post-processing of releases, and its noise protects nothing.
"""

import math

import numpy as np
import torch
from torch import Tensor

from vesper.party.representation import NO_NODES, Nodes

MAX_RATIO = 0.7
"""Ratio of degrees below which training nodes are thinned."""
ERRORS = 2.0
"""Standard errors by which it has to be below."""


def degree_ratio(
    degrees: Tensor, labelled_nodes: Nodes, query_nodes: Nodes, *, noise_std: float
) -> float:
    """Give the ratio of mean degrees, or 1 where it is not clearly small.

    Args:
        degrees: (num_nodes,) with noise.
        labelled_nodes: training nodes.
        query_nodes: nodes that predictions are wanted for.
        noise_std: in a degree.

    >>> degrees = torch.tensor([8.0, 8.0, 2.0, 2.0])
    >>> speakers, asked = np.array([0, 1]), np.array([2, 3])
    >>> [degree_ratio(degrees, speakers, asked, noise_std=noise) for noise in (0.0, 10.0)]
    [0.25, 1.0]
    """
    if not len(labelled_nodes) or not len(query_nodes):
        return 1.0
    labelled_degree, query_degree = (
        float(degrees[nodes].mean(dtype=torch.float64)) for nodes in (labelled_nodes, query_nodes)
    )
    error = noise_std * math.sqrt(1 / len(query_nodes) + MAX_RATIO**2 / len(labelled_nodes))
    if labelled_degree <= 0 or query_degree + ERRORS * error >= MAX_RATIO * labelled_degree:
        return 1.0
    return max(query_degree / labelled_degree, 0.0)


class DegreeMatching:
    """Releases as heads see them: those of nodes that are not asked about are thinned.

    Args:
        num_nodes: of the graph.
    """

    def __init__(self, num_nodes: int) -> None:
        self._num_nodes, self._ratio = num_nodes, 1.0
        self._positions = NO_NODES  # (num_nodes,) rows of what is kept, -1 for nodes asked about
        self._matched: list[Tensor] = []  # a hop: (nodes not asked about, width)

    def start(self, ratio: float, query_nodes: Nodes) -> None:
        """Thin from now on."""
        self._ratio = ratio
        if ratio < 1:
            is_other = np.ones(self._num_nodes, dtype=bool)
            is_other[query_nodes] = False
            self._positions = np.where(is_other, np.cumsum(is_other) - 1, -1)

    def add_release(self, released: Tensor, *, noise_std: float) -> None:
        """Thin a hop: (num_nodes, width)."""
        if self._ratio == 1:
            return
        hop = len(self._matched)
        others = torch.from_numpy(np.flatnonzero(self._positions >= 0))
        generator = torch.Generator().manual_seed(hop)
        noise = torch.randn((len(others), released.shape[1]), generator=generator)
        added_std = noise_std * math.sqrt(1 - self._ratio**2)
        self._matched.append(self._ratio * released[others] + added_std * noise)

    def rows(self, hop: int, released: Tensor, nodes: Nodes) -> Tensor:
        """Give what heads see of a hop: (B, width)."""
        rows = released[torch.from_numpy(nodes)]
        if self._ratio < 1:
            positions = self._positions[nodes]
            is_matched = torch.from_numpy(positions >= 0)
            rows[is_matched] = self._matched[hop][torch.from_numpy(positions[positions >= 0])]
        return rows
