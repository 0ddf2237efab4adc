"""Edges."""

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
