"""Which edges and nodes of party folders become canaries."""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labelled import labelled_nodes
from vesper.graph.labels import LabelHoldings
from vesper.graph.pairs import Pairs, degrees_of, edges_at


def draw_pairs(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> Pairs:
    """Draw pairs of nodes of one split, no node twice.

    Raises:
        InputError: the split has too few nodes.
    """
    nodes = labelled_nodes(data, labels)[labels.rows(split)]
    if len(nodes) < 2 * count:
        raise InputError(
            f"{labels.path}, column split: expected at least {2 * count} rows with '{split}' for "
            f"{count} canary edges, found {len(nodes)}; ask for fewer with --canaries"
        )
    drawn = np.random.default_rng(seed).permutation(nodes)[: 2 * count]
    return np.sort(drawn.reshape(-1, 2), axis=1)


def draw_nodes(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> NDArray[np.int64]:
    """Take nodes of one split that have most neighbours, none of which another one has.

    Those with many neighbours show most. Fewer than `count` where there are no more.

    Raises:
        InputError: no node of the split has an edge.
    """
    nodes = np.random.default_rng(seed).permutation(
        labelled_nodes(data, labels)[labels.rows(split)]
    )
    nodes = nodes[np.argsort(-degrees_of(data.graph)[nodes], kind="stable")]
    taken, drawn = np.zeros(data.graph.num_nodes, dtype=bool), list[int]()
    for node in nodes.tolist():
        around = edges_at(data.graph, node)
        if len(drawn) == count or not len(around):
            break
        if not taken[around].any():
            taken[around] = True
            drawn.append(node)
    if not drawn:
        raise InputError(
            f"{labels.path}, column split: expected a row with '{split}' whose node has an edge, "
            f"found none; there is no canary node to be had"
        )
    return np.array(drawn, dtype=np.int64)
