"""How likely an edge is after a release, for somebody who knows all other edges.

    released[v] = s_v + noise,     s_v = sum over u in N(v) of m_u, clipped if nodes are protected

With and without the edge {a, b} the means differ in two rows, s_a and s_b. For Gaussian noise

    log ratio = sum over both rows of <r - (s + s') / 2, s - s'> / noise_std^2

is the exact log likelihood ratio of "there" (s) to "not there" (s'). Messages depend on edges
through earlier releases only, so the ratios of several releases of a run add up. No attack is
better than a threshold on this sum (Neyman and Pearson).

Sums are taken of many pairs at once. For other aggregations, which may move other rows too, the two
graphs are held against each other pair by pair (`world_ratios`).

Two worlds that a release may have come from: a graph with some edges, and the same without.

    released[v] = mean_v(G) + noise,     mean(G) the aggregated, perhaps clipped, rows of graph G

    log ratio of v = (|released[v] - mean_v(gone)|^2 - |released[v] - mean_v(there)|^2)
                     / (2 noise_std^2)

Rows have noise of their own, so the exact log likelihood ratio of the two worlds is the sum over
all rows, whichever edges make the difference: one, or all of a node. Messages depend on edges
through earlier releases only, so the ratios of several releases of a run add up.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.edges.edge_relation import has_edge, toggle_edge
from vesper.graph.edges.pairs import Pairs, are_edges
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.clipped_sum import clip_on_grid
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.recording_door import Release
from vesper.privacy.events import SUM

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorldRatios:
    """What one release tells."""

    log_ratios: Numbers
    """(num_nodes,) of "there" to "gone", by the row of each node; without noise it is counted as 1,
    which keeps the sign."""
    mu_squared: Numbers
    """(num_nodes,) distance of the two worlds by the row of each node; infinite without noise."""


def world_ratios(release: Release, there: Graph, gone: Graph) -> WorldRatios:
    """Hold what was seen against both graphs.

    Args:
        release: what was seen.
        there: the graph with the edges that are asked for.
        gone: the graph without them.
    """
    means = [_means(release, graph) for graph in (there, gone)]  # (num_nodes, width) each
    seen = release.released.astype(np.float64)
    far = [np.square(seen - mean).sum(axis=1) for mean in means]
    apart = np.square(means[0] - means[1]).sum(axis=1)
    if release.noise_std == 0:
        return WorldRatios((far[1] - far[0]) / 2, np.where(apart > 0, np.inf, 0.0))
    variance = release.noise_std**2
    return WorldRatios((far[1] - far[0]) / (2 * variance), apart / variance)


def _means(release: Release, graph: Graph) -> Numbers:
    values = release.aggregation.aggregate(graph, release.messages, None)
    if release.row_norm is not None:
        clip_on_grid(values, row_norm=release.row_norm)
    return values / release.aggregation.steps


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
