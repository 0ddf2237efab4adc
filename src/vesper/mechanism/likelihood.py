"""How likely an edge is after a release, for somebody who knows all other edges.

    released[v] = s_v + noise,     s_v = sum over u in N(v) of m_u

With and without the edge {a, b} the means differ in two rows. For Gaussian noise

    log ratio = (<r_a - s_a, m_b> - |m_b|^2 / 2 + <r_b - s_b, m_a> - |m_a|^2 / 2) / noise_std^2

is the exact log likelihood ratio of "there" to "not there"; s without the edge. For aggregations
other than the sum both means are made, in every row that the edge can move (`worlds_of`). Messages
depend on edges through earlier releases only, so the ratios of several releases of a run add up. No
attack is better than a threshold on this sum (Neyman and Pearson).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.graph.pairs import Pairs, are_edges
from vesper.graph.relation import toggle_edge
from vesper.mechanism.grid import STEPS
from vesper.mechanism.neighbor_sum import NeighborSum
from vesper.mechanism.watched_door import Release
from vesper.privacy.events import SUM

Means = NDArray[np.float64]
"""(rows, width)."""


def log_ratios(release: Release, graph: Graph, pairs: Pairs) -> NDArray[np.float64]:
    """Exact log likelihood ratio of each pair being an edge, all others known; (num_pairs,).

    Args:
        release: what was seen.
        graph: all edges; whether the pair itself is among them makes no difference.
        pairs: whose edges are asked for.

    Without noise the ratio is infinite; then the noise is counted as 1, which keeps its sign.
    """
    if release.aggregation.name != SUM:
        return np.array([_log_ratio(release, *worlds_of(release, graph, pair)) for pair in pairs])
    heard = release.messages[pairs[:, ::-1]] / STEPS  # (num_pairs, 2, width), of the other end
    nodes, places = np.unique(pairs, return_inverse=True)
    summed = NeighborSum().aggregate(graph, release.messages, nodes)  # (nodes, width)
    sums = (summed / STEPS)[places.reshape(pairs.shape)]  # (num_pairs, 2, width)
    sums = sums - heard * are_edges(graph, pairs)[:, None, None]
    ends = release.released[pairs].astype(np.float64)  # (num_pairs, 2, width)
    inner = ((ends - sums - heard / 2) * heard).sum(axis=(1, 2))
    return np.asarray(inner / (release.noise_std or 1.0) ** 2)


def distances(release: Release, graph: Graph, pairs: Pairs) -> NDArray[np.float64]:
    """mu^2 between the two worlds of each pair: (num_pairs,); infinite without noise."""
    if release.aggregation.name == SUM:
        length = np.square(release.messages[pairs] / STEPS).sum(axis=(1, 2))
    else:
        worlds = [worlds_of(release, graph, pair)[1:] for pair in pairs]
        length = np.array([np.square(there - without).sum() for there, without in worlds])
    if release.noise_std == 0:
        return np.where(length > 0, np.inf, 0.0)
    return np.asarray(length / release.noise_std**2)


def worlds_of(
    release: Release, graph: Graph, pair: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Means, Means]:
    """Rows that the edge of a pair can move, and their means with it and without."""
    edge = int(pair[0]), int(pair[1])
    other = toggle_edge(graph, edge)
    there, without = (graph, other) if graph.num_edges > other.num_edges else (other, graph)
    rows = np.array(edge)
    if release.aggregation.moves_others:
        around = [there.neighbors[there.indptr[v] : there.indptr[v + 1]] for v in edge]
        rows = np.unique(np.concatenate(around)).astype(np.int64)  # the endpoints are among them
    means = [
        release.aggregation.aggregate(each, release.messages, rows) / release.aggregation.steps
        for each in (there, without)
    ]
    return rows, means[0], means[1]


def _log_ratio(release: Release, rows: NDArray[np.int64], there: Means, without: Means) -> float:
    middle = (there + without) / 2
    inner = ((release.released[rows].astype(np.float64) - middle) * (there - without)).sum()
    return float(inner) / (release.noise_std or 1.0) ** 2
