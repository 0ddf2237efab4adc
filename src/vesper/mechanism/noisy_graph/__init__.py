"""Graphs of noisy edges, which are pure epsilon and then public.

In reading order:

    perturbed_graph   the interface, and the release for a receipt
    edgerand          randomised response on every pair of nodes
    lapgraph          the largest of all noisy pairs
    rare_pairs        exact sampling of few pairs out of very many
    node_pairs        pairs of nodes as numbers
"""

from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.lapgraph import LapGraph
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation

__all__ = [
    "EdgeRand",
    "LapGraph",
    "Perturbation",
]
