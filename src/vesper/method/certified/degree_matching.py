"""Degree matching: training sums are scaled to the degree of query nodes.

    ratio = mean degree of query nodes / mean degree of training nodes,      from the first hop
    z'    = ratio z + sqrt(1 - ratio^2) N(0, noise_std^2)                    except at query nodes

Heads are trained, and stages are chosen, on training and validation nodes. Where query nodes have
far fewer neighbours (new customers, nodes without an edge), a head learns to rely on sums that
query nodes do not receive, and validation rewards it. A sum that is scaled down, with the lost
noise added again, looks like a sum over fewer neighbours, so heads learn what such a sum is worth,
and a stage that gains nothing from it is not chosen. Where degrees are similar, or noise hides
whether they are, nothing changes.

All of it is post-processing of releases, and the added noise protects nothing.
"""

import math

import numpy as np
import torch
from torch import Tensor

from vesper.party.representation import NO_NODES, Nodes

MAX_RATIO = 0.7
"""Ratio of degrees below which training sums are scaled."""
ERRORS = 2.0
"""Standard errors by which the ratio has to lie below `MAX_RATIO`."""


def degree_ratio(
    degrees: Tensor, labelled_nodes: Nodes, query_nodes: Nodes, *, noise_std: float
) -> float:
    """Give the ratio of mean degrees, or 1 where it is not clearly small.

    Args:
        degrees: (num_nodes,) with noise.
        labelled_nodes: training nodes.
        query_nodes: nodes that predictions are wanted for.
        noise_std: noise in a degree.

    >>> degrees = torch.tensor([8.0, 8.0, 2.0, 2.0])
    >>> labelled, query = np.array([0, 1]), np.array([2, 3])
    >>> [degree_ratio(degrees, labelled, query, noise_std=noise) for noise in (0.0, 10.0)]
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
    """Releases as heads read them: scaled and noisier, except at query nodes.

    Args:
        num_nodes: number of nodes of the graph.
    """

    def __init__(self, num_nodes: int) -> None:
        self._num_nodes, self._ratio = num_nodes, 1.0
        self._positions = NO_NODES  # (num_nodes,) rows in `_matched`, -1 for query nodes
        self._matched: list[Tensor] = []  # a hop: (other nodes, width)

    def start(self, ratio: float, query_nodes: Nodes) -> None:
        """Match degrees from now on; a ratio of 1 changes nothing."""
        self._ratio = ratio
        if ratio < 1:
            is_other = np.ones(self._num_nodes, dtype=bool)
            is_other[query_nodes] = False
            self._positions = np.where(is_other, np.cumsum(is_other) - 1, -1)

    def add_release(self, released: Tensor, *, noise_std: float) -> None:
        """Match a hop: (num_nodes, width)."""
        if self._ratio == 1:
            return
        hop = len(self._matched)
        others = torch.from_numpy(np.flatnonzero(self._positions >= 0))
        generator = torch.Generator().manual_seed(hop)
        noise = torch.randn((len(others), released.shape[1]), generator=generator)
        added_std = noise_std * math.sqrt(1 - self._ratio**2)
        self._matched.append(self._ratio * released[others] + added_std * noise)

    def rows(self, hop: int, released: Tensor, nodes: Nodes) -> Tensor:
        """Give what heads read of a hop: (B, width)."""
        rows = released[torch.from_numpy(nodes)]
        if self._ratio < 1:
            positions = self._positions[nodes]
            is_matched = torch.from_numpy(positions >= 0)
            rows[is_matched] = self._matched[hop][torch.from_numpy(positions[positions >= 0])]
        return rows
