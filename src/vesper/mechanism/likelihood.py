"""How likely an edge is after a release, for somebody who knows all other edges.

    released[v] = s_v + noise,     s_v = sum over u in N(v) of m_u, clipped if nodes are protected

With and without the edge {a, b} the means differ in two rows, s_a and s_b. For Gaussian noise

    log ratio = sum over both rows of <r - (s + s') / 2, s - s'> / noise_std^2

is the exact log likelihood ratio of "there" (s) to "not there" (s'). Messages depend on edges
through earlier releases only, so the ratios of several releases of a run add up. No attack is
better than a threshold on this sum (Neyman and Pearson).

Sums are taken of many pairs at once. For other aggregations, which may move other rows too, the two
graphs are held against each other pair by pair (`world_ratios`).
"""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.graph.pairs import Pairs, are_edges
from vesper.graph.relation import has_edge, toggle_edge
from vesper.mechanism.clipped_grid import clip_on_grid
from vesper.mechanism.grid import STEPS
from vesper.mechanism.neighbor_sum import NeighborSum
from vesper.mechanism.watched_door import Release
from vesper.mechanism.world_ratios import WorldRatios, world_ratios
from vesper.privacy.events import SUM

Numbers = NDArray[np.float64]


def log_ratios(release: Release, graph: Graph, pairs: Pairs) -> Numbers:
    """Exact log likelihood ratio of each pair being an edge, all others known; (num_pairs,).

    Args:
        release: what was seen.
        graph: all edges; whether the pair itself is among them makes no difference.
        pairs: whose edges are asked for.

    Without noise the ratio is infinite; then the noise is counted as 1, which keeps its sign.
    """
    if release.aggregation.name != SUM:
        return np.array([_of_pair(release, graph, pair).log_ratios.sum() for pair in pairs])
    there, gone = _ends(release, graph, pairs)
    seen = release.released[pairs].astype(np.float64)  # (num_pairs, 2, width)
    inner = ((seen - (there + gone) / 2) * (there - gone)).sum(axis=(1, 2))
    return np.asarray(inner / (release.noise_std or 1.0) ** 2)


def distances(release: Release, graph: Graph, pairs: Pairs) -> Numbers:
    """mu^2 between the two worlds of each pair: (num_pairs,); infinite without noise."""
    if release.aggregation.name != SUM:
        return np.array([_of_pair(release, graph, pair).mu_squared.sum() for pair in pairs])
    there, gone = _ends(release, graph, pairs)
    apart = np.square(there - gone).sum(axis=(1, 2))
    if release.noise_std == 0:
        return np.where(apart > 0, np.inf, 0.0)
    return np.asarray(apart / release.noise_std**2)


def _ends(release: Release, graph: Graph, pairs: Pairs) -> tuple[Numbers, Numbers]:
    """Means of both ends' rows, with the edge and without: (num_pairs, 2, width) each."""
    heard = release.messages[pairs[:, ::-1]].astype(np.int32)  # (num_pairs, 2, width)
    nodes, places = np.unique(pairs, return_inverse=True)
    sums = NeighborSum().aggregate(graph, release.messages, nodes)  # (nodes, width)
    gone = sums[places.reshape(pairs.shape)] - heard * are_edges(graph, pairs)[:, None, None]
    there = gone + heard
    if release.row_norm is not None:
        for values in (there, gone):
            clip_on_grid(values.reshape(-1, values.shape[2]), row_norm=release.row_norm)
    return there / STEPS, gone / STEPS


def _of_pair(release: Release, graph: Graph, pair: NDArray[np.int64]) -> WorldRatios:
    edge = (int(pair[0]), int(pair[1]))
    other = toggle_edge(graph, edge)
    there, gone = (graph, other) if has_edge(graph, edge) else (other, graph)
    return world_ratios(release, there, gone)
