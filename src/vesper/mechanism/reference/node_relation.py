"""The node relation (claim N-NODE): all edges of one node at once.

    G ~ G'   iff   G' is G with all edges of one node removed, or vice versa
    aggregated[v] = clip(sum over u in N(v) of message[u], row_norm)
    clip(x, c)    = x min(1, c / ||x||)

The node itself stays: both parties know the nodes. Its own row moves too, by up to max_degree,
which the paper overlooks; clipping limits that to `row_norm`.
"""

import math

import numpy as np

from vesper.errors import InputError, first_three
from vesper.graph.edges.edge_relation import edges_of
from vesper.graph.graph import Graph
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.linear import Floats, degrees_of, rounded_up
from vesper.privacy.accounting.participation import node_rows
from vesper.privacy.accounting.safe_numbers import expect, expect_count


class ClippedNeighborSum:
    """Neighbour sums without the own message, each clipped to `row_norm`.

    Claim: N-NODE. One node moves the output by at most sqrt(max_degree + row_norm^2);
        row_norm = sqrt(max_degree) gives sqrt(2 max_degree). The paper claims
        1 + sqrt(max_degree) S for unclipped sums, S = sqrt 2, which move by up to
        sqrt(max_degree + max_degree^2).
    Relation: one graph is the other with all edges of one node removed, both with degrees at most
        `max_degree`.
    Assumes (caller verifies): rows of norm at most 1, edge-free; the degree bound is a public
        promise about both graphs. Meeting it by deleting edges is *not* stable under this
        relation (without one node, edges deleted elsewhere come back), so a graph that breaks it
        is refused.
    Moves: the rows of the node and of its neighbours, at most max_degree + 1.
    Tight: yes, a star with `max_degree` leaves and equal messages of norm 1.
    Proof: docs/claims/N-NODE.md.

    Raises:
        InputError: max_degree below 1, row_norm outside [1, max_degree], or a graph that breaks
            the promise.
    """

    def __init__(self, *, max_degree: int, row_norm: float) -> None:
        expect_count("max_degree", max_degree, at_least=1)
        expect(
            1 <= row_norm <= max_degree,
            name="row_norm",
            wanted=f"1 <= row_norm <= max_degree = {max_degree}",
            got=row_norm,
            remedy=f"try sqrt(max_degree) = {math.sqrt(max_degree):.4g}",
        )
        self.max_degree, self.row_norm = max_degree, row_norm

    def aggregate(self, graph: Graph, messages: Floats) -> Floats:
        """Sum and clip, (num_nodes, width)."""
        high = np.flatnonzero(degrees_of(graph) > self.max_degree)
        if len(high):
            raise InputError(
                f"max_degree: expected at most {self.max_degree} neighbours per node, got more "
                f"at {len(high)} nodes ({first_three(high)}); set a larger max_degree: "
                "deleting edges to meet it would break the guarantee"
            )
        sums = GinAggregation(own_scale=0.0).aggregate(graph, messages)  # (num_nodes, width)
        return clip_rows(sums, norm=self.row_norm)

    def node_sensitivity(self) -> float:
        """Return sqrt(max_degree + row_norm^2)."""
        return rounded_up(math.sqrt(node_rows(max_degree=self.max_degree, row_norm=self.row_norm)))


def claimed_node_sensitivity(*, max_degree: int, edge_sensitivity: float) -> float:
    """Return the paper's 1 + sqrt(D) S for unclipped sums: refuted from D = 3 on."""
    expect_count("max_degree", max_degree, at_least=1)
    return 1 + math.sqrt(max_degree) * edge_sensitivity


def clip_rows(rows: Floats, *, norm: float) -> Floats:
    """Shorten rows longer than `norm`; no two rows move further apart."""
    lengths = np.sqrt(np.square(rows).sum(axis=1))[:, None]  # (num_nodes, 1)
    clipped: Floats = rows * (norm / np.maximum(lengths, norm))
    return clipped


def isolate(graph: Graph, node: int) -> Graph:
    """Return the graph without the edges of `node`.

    >>> list(edges_of(isolate(Graph.from_edges(3, [(0, 1), (1, 2), (0, 2)]), 1)))
    [(0, 2)]
    """
    if not 0 <= node < graph.num_nodes:
        raise InputError(f"node: expected a number from 0 to {graph.num_nodes - 1}, got {node}")
    return Graph.from_edges(graph.num_nodes, (e for e in edges_of(graph) if node not in e))
