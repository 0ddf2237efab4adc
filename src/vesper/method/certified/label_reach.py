"""Label reach: do query nodes have as many labelled neighbours as training nodes?

    counts[v]  = labelled neighbours of v + N(0, noise_std^2)          from the probe's release
    shortfall  = mean(counts of training nodes) / 2 - mean(counts of query nodes)
    similar    where  shortfall + 2 errors <= MISSING_LABELLED_NEIGHBORS
    lower      where  shortfall > 2 errors, and not similar

Labels in messages help as long as query nodes receive as many of them as training nodes do. Where
query nodes come from a later window and know nobody in this one, a model trained on received labels
would be queried with received posteriors. Nodes with fewer neighbours also have fewer labelled
neighbours, without being from another window: where the probe measures degrees, training counts
are first scaled to the degree of query nodes.

A mean over many nodes tolerates much noise, so this takes a hundredth of the budget. Where the
answer is uncertain, labels are left out: a single node's sum is mostly noise then, so little is
lost, whereas a model that was misled by labels loses much (docs/decisions/0018).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LABEL_REACH_SHARE = 0.01
"""Share of the budget that measuring label reach takes."""

ERRORS = 2.0
"""Standard errors within which a mean is assumed to lie."""
MISSING_LABELLED_NEIGHBORS = 0.5
"""Labelled neighbours that query nodes may lack on average and still count as similar."""

Counts = NDArray[np.float32]


def label_reach_messages(labelled_nodes: NDArray[np.int64], num_nodes: int) -> Counts:
    """Messages that sum to the number of labelled neighbours: (num_nodes, 1)."""
    messages = np.zeros((num_nodes, 1), dtype=np.float32)
    messages[labelled_nodes] = 1
    return messages


@dataclass(frozen=True)
class LabelReach:
    """Whether query nodes have as many labelled neighbours; both False where it is uncertain."""

    similar: bool
    """Query nodes have about half as many labelled neighbours as training nodes, or more."""
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
    """Compare as if training nodes had as few neighbours as query nodes have.

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
