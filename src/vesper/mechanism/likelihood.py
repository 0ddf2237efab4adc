"""How likely an edge is after a release, for somebody who knows all other edges.

    released[v] = s_v + noise,     s_v = sum over u in N(v) of m_u

With and without the edge {a, b} the means differ in two rows. For Gaussian noise

    log ratio = (<r_a - s_a, m_b> - |m_b|^2 / 2 + <r_b - s_b, m_a> - |m_a|^2 / 2) / noise_std^2

is the exact log likelihood ratio of "there" to "not there"; s without the edge. Messages depend on
edges through earlier releases only, so the ratios of several releases of a run add up. No attack
is better than a threshold on this sum (Neyman and Pearson).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.graph.pairs import Pairs, are_edges
from vesper.mechanism.grid import STEPS
from vesper.mechanism.neighbor_sum import NeighborSum
from vesper.mechanism.watched_door import Release


def log_ratios(release: Release, graph: Graph, pairs: Pairs) -> NDArray[np.float64]:
    """Exact log likelihood ratio of each pair being an edge, all others known; (num_pairs,).

    Args:
        release: what was seen.
        graph: all edges; whether the pair itself is among them makes no difference.
        pairs: whose edges are asked for.

    Without noise the ratio is infinite; then the noise is counted as 1, which keeps its sign.
    """
    heard = release.messages[pairs[:, ::-1]] / STEPS  # (num_pairs, 2, width), of the other end
    nodes, places = np.unique(pairs, return_inverse=True)
    summed = NeighborSum().aggregate(graph, release.messages, nodes)  # (nodes, width)
    sums = (summed / STEPS)[places.reshape(pairs.shape)]  # (num_pairs, 2, width)
    sums = sums - heard * are_edges(graph, pairs)[:, None, None]
    ends = release.released[pairs].astype(np.float64)  # (num_pairs, 2, width)
    inner = ((ends - sums - heard / 2) * heard).sum(axis=(1, 2))
    return np.asarray(inner / (release.noise_std or 1.0) ** 2)


def distances(release: Release, pairs: Pairs) -> NDArray[np.float64]:
    """mu^2 between the two worlds of each pair: (num_pairs,); infinite without noise."""
    length = np.square(release.messages[pairs] / STEPS).sum(axis=(1, 2))
    if release.noise_std == 0:
        return np.where(length > 0, np.inf, 0.0)
    return np.asarray(length / release.noise_std**2)
