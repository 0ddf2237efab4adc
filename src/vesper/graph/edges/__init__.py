"""Edges of a graph, for proofs, audits and attacks; nothing here is sent to another party.

- `edge_relation`: graphs that differ by one edge, and induced subgraphs
- `pairs`: degrees, and pairs of nodes with and without an edge
"""

from vesper.graph.edges.edge_relation import (
    Edge,
    all_graphs,
    edges_of,
    has_edge,
    induced_subgraph,
    toggle_edge,
)
from vesper.graph.edges.pairs import (
    Pairs,
    are_edges,
    degrees_of,
    draw_edges,
    draw_non_edges,
    edges_at,
)

__all__ = [
    "Edge",
    "Pairs",
    "all_graphs",
    "are_edges",
    "degrees_of",
    "draw_edges",
    "draw_non_edges",
    "edges_at",
    "edges_of",
    "has_edge",
    "induced_subgraph",
    "toggle_edge",
]
