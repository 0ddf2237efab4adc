"""Laws of noisy graphs on three nodes, with cells 0, 1 and 2, and a test of fit."""

import mpmath
import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.node_pairs import cells_of
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation
from vesper.mechanism.noisy_graph.rare_pairs import sampling_rates

EPSILONS = (0.05, 0.3, 1.0, 4.0, 8.0, 9.0, 16.0, 40.0, 100.0)
Law = NDArray[np.float64]


def exact_chance(chance: float) -> mpmath.mpf:
    """Exact chance that a cell is chosen, from the rates that are actually drawn."""
    skip, keep = sampling_rates(chance)
    chosen = -mpmath.expm1(-mpmath.mpf(skip))
    return chosen if keep is None else chosen / (1 + mpmath.exp(mpmath.mpf(keep)))


def observed_counts(mechanism: Perturbation, graph: Graph, times: int) -> Law:
    noise = NoiseSource.for_simulation(5)
    counts = np.zeros(8)
    for _ in range(times):
        counts[sum(1 << int(cell) for cell in cells_of(mechanism.perturb(graph, noise)))] += 1
    return counts


def assert_follows(counts: Law, law: Law) -> None:
    """Check Pearson's statistic against the 99.99 % point of seven degrees of freedom."""
    expected = counts.sum() * law
    assert float((np.square(counts - expected) / expected).sum()) < 29.9
