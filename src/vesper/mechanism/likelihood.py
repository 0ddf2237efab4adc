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
from vesper.mechanism.recording_door import RecordedRelease
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


def world_ratios(release: RecordedRelease, with_edges: Graph, without_edges: Graph) -> WorldRatios:
    """Hold what was seen against both graphs.

    Args:
        release: what was seen.
        with_edges: the graph with the edges that are asked for.
        without_edges: the graph without them.
    """
    means = [
        _means(release, graph) for graph in (with_edges, without_edges)
    ]  # (num_nodes, width) each
    released = release.released.astype(np.float64)
    squared_residuals = [np.square(released - mean).sum(axis=1) for mean in means]
    squared_distance = np.square(means[0] - means[1]).sum(axis=1)
    if release.noise_std == 0:
        return WorldRatios(
            (squared_residuals[1] - squared_residuals[0]) / 2,
            np.where(squared_distance > 0, np.inf, 0.0),
        )
    variance = release.noise_std**2
    return WorldRatios(
        (squared_residuals[1] - squared_residuals[0]) / (2 * variance), squared_distance / variance
    )


def _means(release: RecordedRelease, graph: Graph) -> Numbers:
    values = release.aggregation.aggregate(graph, release.messages, None)
    if release.row_norm is not None:
        clip_on_grid(values, row_norm=release.row_norm)
    return values / release.aggregation.steps


def log_ratios(release: RecordedRelease, graph: Graph, pairs: Pairs) -> Numbers:
    """Exact log likelihood ratio of each pair being an edge, all others known; (num_pairs,).

    Args:
        release: what was seen.
        graph: all edges; whether the pair itself is among them makes no difference.
        pairs: whose edges are asked for.

    Without noise the ratio is infinite; then the noise is counted as 1, which keeps its sign.
    """
    if release.aggregation.name != SUM:
        return np.array([_of_pair(release, graph, pair).log_ratios.sum() for pair in pairs])
    with_edges, without_edges = _endpoint_means(release, graph, pairs)
    released = release.released[pairs].astype(np.float64)  # (num_pairs, 2, width)
    inner = ((released - (with_edges + without_edges) / 2) * (with_edges - without_edges)).sum(
        axis=(1, 2)
    )
    return np.asarray(inner / (release.noise_std or 1.0) ** 2)


def squared_distances(release: RecordedRelease, graph: Graph, pairs: Pairs) -> Numbers:
    """mu^2 between the two worlds of each pair: (num_pairs,); infinite without noise."""
    if release.aggregation.name != SUM:
        return np.array([_of_pair(release, graph, pair).mu_squared.sum() for pair in pairs])
    with_edges, without_edges = _endpoint_means(release, graph, pairs)
    squared_distance = np.square(with_edges - without_edges).sum(axis=(1, 2))
    if release.noise_std == 0:
        return np.where(squared_distance > 0, np.inf, 0.0)
    return np.asarray(squared_distance / release.noise_std**2)


def _endpoint_means(
    release: RecordedRelease, graph: Graph, pairs: Pairs
) -> tuple[Numbers, Numbers]:
    """Means of both ends' rows, with the edge and without: (num_pairs, 2, width) each."""
    other_messages = release.messages[pairs[:, ::-1]].astype(np.int32)  # (num_pairs, 2, width)
    nodes, places = np.unique(pairs, return_inverse=True)
    sums = NeighborSum().aggregate(graph, release.messages, nodes)  # (nodes, width)
    without_edges = (
        sums[places.reshape(pairs.shape)] - other_messages * are_edges(graph, pairs)[:, None, None]
    )
    with_edges = without_edges + other_messages
    if release.row_norm is not None:
        for values in (with_edges, without_edges):
            clip_on_grid(values.reshape(-1, values.shape[2]), row_norm=release.row_norm)
    return with_edges / STEPS, without_edges / STEPS


def _of_pair(release: RecordedRelease, graph: Graph, pair: NDArray[np.int64]) -> WorldRatios:
    edge = (int(pair[0]), int(pair[1]))
    other = toggle_edge(graph, edge)
    with_edges, without_edges = (graph, other) if has_edge(graph, edge) else (other, graph)
    return world_ratios(release, with_edges, without_edges)
