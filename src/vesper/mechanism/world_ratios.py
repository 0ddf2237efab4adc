"""Two worlds that a release may have come from: a graph with some edges, and the same without.

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

from vesper.graph.graph import Graph
from vesper.mechanism.clipped_grid import clip_on_grid
from vesper.mechanism.watched_door import Release

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
