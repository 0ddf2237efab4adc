"""Exact log likelihood ratios of edges given a release, for an attacker who knows the other edges.

    released[v] = mean_v(G) + noise,     mean(G) the aggregated, perhaps clipped, rows of graph G

    log ratio of v = (|released[v] - mean_v(without)|^2 - |released[v] - mean_v(with)|^2)
                     / (2 noise_std^2)

compares two worlds: a graph with some edges, and the same graph without them (`world_ratios`).
Noise is independent between rows, so the exact log likelihood ratio of the two worlds is the sum
over all rows, whether the worlds differ by one edge or by all edges of a node. Messages depend on
edges through earlier releases only, so the ratios of several releases of a run add up. No attack
is better than a threshold on this sum (Neyman and Pearson).

For neighbour sums, one edge {a, b} changes the means of two rows only, from s' to s, and

    log ratio = sum over both rows of <released - (s + s') / 2, s - s'> / noise_std^2

is computed for many pairs at once (`log_ratios`). Other aggregations, which may move more rows,
compare the two graphs pair by pair.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.edges.edge_relation import has_edge, toggle_edge
from vesper.graph.edges.pairs import Pairs, are_edges
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.aggregations.row_noise import clip_on_grid
from vesper.mechanism.recording_door import RecordedRelease
from vesper.privacy.events import SUM

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorldRatios:
    """Evidence of one release for one world against another, row by row."""

    log_ratios: Numbers
    """(num_nodes,) log ratio of "with the edges" to "without"; a noise_std of 0 counts as 1, which
    keeps the sign."""
    mu_squared: Numbers
    """(num_nodes,) squared distance of the two worlds, in noise_std; infinite without noise."""


def world_ratios(release: RecordedRelease, with_edges: Graph, without_edges: Graph) -> WorldRatios:
    """Compare a release with what both graphs would give.

    Args:
        release: the recorded release.
        with_edges: the graph with the edges in question.
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
        release: the recorded release.
        graph: all edges; whether the pair itself is among them makes no difference.
        pairs: (num_pairs, 2) pairs of nodes in question.

    Without noise the ratio would be infinite; a noise_std of 0 counts as 1, which keeps the sign.
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
    """Return mu^2 between the two worlds of each pair: (num_pairs,); infinite without noise."""
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
    """Means of both endpoints' rows, with the edge and without: (num_pairs, 2, width) each."""
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
