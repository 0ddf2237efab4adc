"""The poll: do the nodes that predictions are wanted for hear training nodes at all?

    heard[v] = number of v's neighbours that speak + N(0, noise_std^2)        one paid release
    lacking  = mean(heard of training nodes) / 2 - mean(heard of asked nodes)
    alike    where  lacking + 2 errors <= FEW;    apart  where  lacking > 2 errors
    and where asked nodes have clearly fewer neighbours, training nodes count as if they had too

Labels as messages help as long as test nodes hear as many of them as training nodes do. Where test
nodes come from another window, and know nobody in this one, a model trained on labels is asked
about posteriors. Who has fewer neighbours hears fewer speakers too, and is not of another window
for that: the trial, which hears degrees, can tell. Means over many nodes stand much noise, so the
poll costs a hundredth of the budget. Where it cannot tell, labels are not said: single nodes hear
next to nothing then, so little is lost, and a model that was misled by labels loses much
(docs/decisions/0018).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LABEL_REACH_SHARE = 0.01
"""Of the budget."""

ERRORS = 2.0
"""Standard errors within which a mean may lie."""
MISSING_LABELLED_NEIGHBORS = 0.5
"""Speakers that asked nodes may lack."""

Counts = NDArray[np.float32]


def label_reach_messages(labelled_nodes: NDArray[np.int64], num_nodes: int) -> Counts:
    """Messages of the poll: 1 from each speaker; (num_nodes, 1)."""
    messages = np.zeros((num_nodes, 1), dtype=np.float32)
    messages[labelled_nodes] = 1
    return messages


@dataclass(frozen=True)
class LabelReach:
    """What the poll tells; neither where it cannot tell."""

    similar: bool
    """Asked nodes hear about half as many speakers as training nodes, or more."""
    lower: bool
    """They hear fewer."""


def label_reach(labelled_counts: Counts, query_counts: Counts, *, noise_std: float) -> LabelReach:
    """Judge what training nodes and asked nodes heard.

    >>> four, three, one = (np.full(100, heard, "f4") for heard in (4, 3, 1))
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
    """Judge as if training nodes had as few neighbours as asked nodes have.

    Args:
        labelled_counts: speakers that training nodes heard.
        query_counts: those that asked nodes heard.
        ratio: of the degree of asked nodes to that of training nodes, below 1.
        noise_std: in what was heard.

    Returns:
        None where asked nodes perhaps hear nobody at all.

    >>> four, one = (np.full(100, heard, "f4") for heard in (4, 1))
    >>> label_reach_by_degree(four, one, ratio=0.3, noise_std=1.0)
    LabelReach(similar=True, lower=False)
    >>> label_reach_by_degree(four, one, ratio=0.3, noise_std=10.0)
    """
    if float(query_counts.mean(dtype=np.float64)) <= ERRORS * noise_std / len(query_counts) ** 0.5:
        return None
    return label_reach(labelled_counts * np.float32(ratio), query_counts, noise_std=noise_std)
