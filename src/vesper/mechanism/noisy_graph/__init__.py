"""Noisy graph."""

from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.lapgraph import LapGraph
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation

__all__ = [
    "EdgeRand",
    "LapGraph",
    "Perturbation",
]
