"""Query nodes that differ from training nodes: label reach, and degree matching.

**Label reach**: do query nodes have as many labelled neighbours as training nodes?

    counts[v]  = labelled neighbours of v + N(0, noise_std^2)          from the probe's release
    shortfall  = mean(counts of training nodes) / 2 - mean(counts of query nodes)
    similar    where  shortfall + 2 errors <= MISSING_LABELLED_NEIGHBORS
    lower      where  shortfall > 2 errors, and not similar

Labels in messages help as long as query nodes receive as many of them as training nodes do. Where
query nodes come from a later window and have no neighbours in this one, a model trained on received
labels would be queried with received posteriors. Nodes with fewer neighbours also have fewer
labelled neighbours, without being from another window: where the probe measures degrees, training
counts are first scaled to the degree of query nodes.

A mean over many nodes tolerates much noise, so this takes a hundredth of the budget. Where the
answer is uncertain, labels are left out: a single node's sum is mostly noise then, so little is
lost, whereas a model that is misled by labels loses much (docs/decisions/0018).

**Degree matching**: training sums are scaled to the degree of query nodes.

    ratio = mean degree of query nodes / mean degree of training nodes,      from the first hop
    z'    = ratio z + sqrt(1 - ratio^2) N(0, noise_std^2)                    except at query nodes

Heads are trained, and stages are chosen, on training and validation nodes. Where query nodes have
far fewer neighbours (new customers, nodes without an edge), a head learns to rely on sums that
query nodes do not receive, and validation rewards it. A sum that is scaled down, with the lost
noise added again, looks like a sum over fewer neighbours, so heads learn what such a sum is worth,
and a stage that gains nothing from it is not chosen. Where degrees are similar, or noise hides
whether they are, nothing changes.

All of it is post-processing of releases, and the added noise gives no privacy.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.party.representation import NO_NODES, Nodes

LABEL_REACH_SHARE = 0.01
"""Share of the budget that measuring label reach takes."""
ERRORS = 2.0
"""Standard errors within which a mean is assumed to lie, and by which a ratio must be below
`MAX_RATIO`."""
MISSING_LABELLED_NEIGHBORS = 0.5
"""Labelled neighbours that query nodes may lack on average and still count as similar."""
MAX_RATIO = 0.7
"""Ratio of degrees below which training sums are scaled."""

Counts = NDArray[np.float32]


def label_reach_messages(labelled_nodes: NDArray[np.int64], num_nodes: int) -> Counts:
    """Build messages that sum to the number of labelled neighbours: (num_nodes, 1)."""
    messages = np.zeros((num_nodes, 1), dtype=np.float32)
    messages[labelled_nodes] = 1
    return messages


@dataclass(frozen=True)
class LabelReach:
    """Whether query nodes have as many labelled neighbours; both False where it is uncertain."""

    similar: bool
    """Query nodes have at least about half as many labelled neighbours as training nodes."""
    lower: bool
    """Query nodes have clearly fewer."""


def label_reach(labelled_counts: Counts, query_counts: Counts, *, noise_std: float) -> LabelReach:
    """Compare the noisy counts of training nodes with those of query nodes.

    >>> four, three, one = (np.full(100, count, "f4") for count in (4, 3, 1))
    >>> label_reach(four, three, noise_std=1.0), label_reach(four, one, noise_std=1.0)
    (LabelReach(similar=True, lower=False), LabelReach(similar=False, lower=True))
    >>> label_reach(four, three, noise_std=10.0)
    LabelReach(similar=False, lower=False)
    """
    shortfall = float(labelled_counts.mean(dtype=np.float64)) / 2 - float(
        query_counts.mean(dtype=np.float64)
    )
    margin = ERRORS * noise_std * (0.25 / len(labelled_counts) + 1 / len(query_counts)) ** 0.5
    similar = shortfall + margin <= MISSING_LABELLED_NEIGHBORS
    return LabelReach(similar=similar, lower=shortfall > margin and not similar)


def label_reach_by_degree(
    labelled_counts: Counts, query_counts: Counts, *, ratio: float, noise_std: float
) -> LabelReach | None:
    """Compare as if training nodes had as few neighbours as query nodes.

    Args:
        labelled_counts: labelled neighbours of training nodes, with noise.
        query_counts: labelled neighbours of query nodes, with noise.
        ratio: mean degree of query nodes over that of training nodes, below 1.
        noise_std: noise in the counts.

    Returns:
        None where query nodes may have no labelled neighbours at all.

    >>> four, one = (np.full(100, count, "f4") for count in (4, 1))
    >>> label_reach_by_degree(four, one, ratio=0.3, noise_std=1.0)
    LabelReach(similar=True, lower=False)
    >>> label_reach_by_degree(four, one, ratio=0.3, noise_std=10.0)
    """
    if float(query_counts.mean(dtype=np.float64)) <= ERRORS * noise_std / len(query_counts) ** 0.5:
        return None
    return label_reach(labelled_counts * np.float32(ratio), query_counts, noise_std=noise_std)


def degree_ratio(
    degrees: Tensor, labelled_nodes: Nodes, query_nodes: Nodes, *, noise_std: float
) -> float:
    """Return the ratio of mean degrees, or 1 where it is not clearly small.

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
        self._matched: list[Tensor] = []  # per hop: (other nodes, width)

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
        """Return what heads read of a hop: (B, width)."""
        rows = released[torch.from_numpy(nodes)]
        if self._ratio < 1:
            positions = self._positions[nodes]
            is_matched = torch.from_numpy(positions >= 0)
            rows[is_matched] = self._matched[hop][torch.from_numpy(positions[positions >= 0])]
        return rows
