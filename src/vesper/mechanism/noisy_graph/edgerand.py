"""EdgeRand (Wu et al. 2022): randomised response on every pair of nodes.

flip every cell with chance 1 / (1 + e^epsilon);   thin the result where it has too many edges
"""

import math
from dataclasses import dataclass

import numpy as np

from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.node_pairs import cells_of, graph_of, num_cells_of
from vesper.mechanism.noisy_graph.perturbed_graph import expect_epsilon
from vesper.mechanism.noisy_graph.rare_pairs import (
    MAX_CELLS,
    biased_coins,
    refuse_many,
    sample_cells,
    subsampling_chance,
)
from vesper.privacy.events import PureRelease

MAX_NOISY_EDGES = 30_000_000
"""Expected edges after thinning, of a graph that would have more than `MAX_CELLS` noisy edges."""

MIN_SUBSAMPLING_RATE = 1e-3
"""Smallest rate of draws; smaller rates need long tables."""


@dataclass(frozen=True, kw_only=True)
class EdgeRand:
    """Randomised response on every cell.

    If more than `MAX_CELLS` flips are expected, edges of the noisy graph are dropped at random, so
    that about `MAX_NOISY_EDGES` false ones are left. The share of true edges stays the same, so
    sampling a few neighbours of a node finds as many true ones as before.

    Claim: R-EDGERAND. The noisy graph is (epsilon, 0).
    Relation: differ by one edge.
    Assumes (caller verifies): nothing; neither flips nor dropped edges depend on the graph.
    Moves: one cell.
    Tight: yes, a graph of two nodes, up to rounding of the chance by less than 2^-38.
    Proof: docs/claims/R-EDGERAND.md.
    """

    epsilon: float

    def __post_init__(self) -> None:
        expect_epsilon(self.epsilon)

    @property
    def event(self) -> PureRelease:
        """Charge for all of epsilon."""
        return PureRelease(epsilon=self.epsilon, what="randomised edges")

    @property
    def chance(self) -> float:
        """Chance that a cell is flipped."""
        return 1 / (1 + math.exp(self.epsilon))

    def subsampling_rate(self, num_cells: int) -> float | None:
        """Rate of the draw that a noisy edge must pass to be kept; None: all are kept."""
        expected = num_cells * self.chance
        if expected <= MAX_CELLS:
            return None
        return max(math.log(expected / MAX_NOISY_EDGES - 1), MIN_SUBSAMPLING_RATE)

    def non_edge_chance(self, num_cells: int) -> float:
        """Chance that a non-edge becomes an edge of the noisy graph."""
        return subsampling_chance(self.subsampling_rate(num_cells)) * self.chance

    def refuse_many(self, num_nodes: int) -> None:
        """Refuse, before anything is charged, graphs that would take too long."""
        num_cells = num_cells_of(num_nodes)
        refuse_many(num_cells, chance=self.non_edge_chance(num_cells))

    def perturb(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Flip cells; thin the result if it would have too many edges."""
        num_cells, edges = num_cells_of(graph.num_nodes), cells_of(graph)
        subsampling_rate, chance = self.subsampling_rate(num_cells), self.non_edge_chance(num_cells)
        flipped = sample_cells(num_cells, chance=chance, noise=noise)
        if subsampling_rate is None:
            cells = np.setxor1d(edges, flipped, assume_unique=True)
        else:
            stays = ~biased_coins(len(edges), rate=self.epsilon, noise=noise)
            stays &= biased_coins(len(edges), rate=subsampling_rate, noise=noise)
            others = np.setdiff1d(flipped, edges, assume_unique=True)
            cells = np.sort(np.concatenate([edges[stays], others]))
        return graph_of(cells, num_nodes=graph.num_nodes)
