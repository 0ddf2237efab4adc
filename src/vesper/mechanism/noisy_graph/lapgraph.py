"""LapGraph (Wu et al. 2022): as many of the largest noisy cells as there are edges.

T = noisy number of edges;   add noise to every cell, keep the T largest
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.node_pairs import (
    cells_of,
    descending_order,
    graph_of,
    num_cells_of,
)
from vesper.mechanism.noisy_graph.perturbed_graph import LARGEST_EPSILON, expect_epsilon
from vesper.mechanism.noisy_graph.rare_pairs import (
    biased_coins,
    draw_geometric,
    refuse_many,
    sample_cells,
    subsampling_chance,
)
from vesper.privacy.events import PureRelease

COUNT_SHARE = 0.01
"""Share of epsilon for the number of edges, as published."""

MAX_KEPT_EDGES = 15_000_000
"""Edges of the noisy graph: what is listed for so many fits into memory, whatever is drawn."""

MAX_SUBSAMPLING_CHANCE = 0.4
"""Chances above it are not worth drawing: twice as many cells are no burden."""

SMALLEST_RATE = 1e-3
"""Of draws that settle nothing about privacy."""


@dataclass(frozen=True, kw_only=True)
class LapGraph:
    """The largest of all noisy cells; as many as there are edges, give or take noise.

    Noise is two-sided geometric. Cells of a noisy value below `floor` >= 1 are never kept, even
    when fewer than T are left then: they would be nearly all non-edges, and there are very many.
    Where the cells at the floor itself are far more than are needed each is left out by chance,
    unless it has `subsampling_rate`; those that are kept would be picked from them blindly anyway.

    Claim: R-LAPGRAPH. The noisy graph is (epsilon, 0).
    Relation: differ by one edge.
    Assumes (caller verifies): nothing.
    Moves: one cell, and the number of edges by 1.
    Tight: yes, three nodes, where the count is clamped.
    Proof: docs/claims/R-LAPGRAPH.md.
    """

    epsilon: float

    def __post_init__(self) -> None:
        expect_epsilon(self.epsilon)

    @property
    def event(self) -> PureRelease:
        """All of epsilon."""
        return PureRelease(epsilon=self.epsilon, what="largest noisy cells")

    @property
    def cell_epsilon(self) -> float:
        """What is left for the cells, rounded down."""
        return self.epsilon * (1 - COUNT_SHARE) * (1 - 2.0**-50)

    def refuse_many(self, num_nodes: int) -> None:
        """Refuse what takes too many draws however few cells the noisy count asks for."""
        refuse_many(num_cells_of(num_nodes), chance=0.0)

    def max_edges(self, graph: Graph) -> int:
        """As many as are ever kept."""
        return min(num_cells_of(graph.num_nodes), MAX_KEPT_EDGES)

    def perturb(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Count, then pick."""
        num_cells, edges = num_cells_of(graph.num_nodes), cells_of(graph)
        count = np.array([min(len(edges), 2 * MAX_KEPT_EDGES)], dtype=np.int32)
        noise.add_laplace_to(count, epsilon=self.epsilon * COUNT_SHARE)
        num_kept = int(
            np.clip(count[0], 0, min(num_cells, MAX_KEPT_EDGES))
        )  # T, from here on public

        floor, rate = self.floor(num_kept, num_cells), self.cell_epsilon
        subsampling_rate = self.subsampling_rate(num_kept, num_cells, floor)
        values = np.ones(len(edges), dtype=np.int32)
        noise.add_laplace_to(values, epsilon=rate)
        listed = values >= floor
        if subsampling_rate is not None:
            listed &= (values > floor) | biased_coins(
                len(values), rate=subsampling_rate, noise=noise
            )
        chance = self.non_edge_chance(floor, subsampling_rate)
        others = sample_cells(num_cells, chance=chance, noise=noise)
        others = np.setdiff1d(others, edges, assume_unique=True)
        cells = np.concatenate([edges[listed], others])
        noisy = levels_above_floor(
            len(cells), rate=rate, subsampling_rate=subsampling_rate, noise=noise
        )  # alike for both kinds
        best = descending_order(cells, noisy)[:num_kept]
        return graph_of(np.sort(cells[best]), num_nodes=graph.num_nodes)

    def floor(self, num_kept: int, num_cells: int) -> int:
        """Largest value that about half as many non-edges again as are kept exceed; at least 1."""
        room = max(num_cells, 1) / ((1 + math.exp(-self.cell_epsilon)) * num_candidates(num_kept))
        return max(1, math.floor(math.log(room) / self.cell_epsilon))

    def subsampling_rate(self, num_kept: int, num_cells: int, floor: int) -> float | None:
        """Rate of the draws that cells at the floor must win; None: all of them stay.

        Then about as many non-edges are listed as are wanted.
        """
        rate = self.cell_epsilon
        at_floor = num_cells * math.exp(-rate * floor) * math.tanh(rate / 2)
        above = num_cells * math.exp(-rate * (floor + 1)) / (1 + math.exp(-rate))
        if at_floor == 0 or num_candidates(num_kept) - above > MAX_SUBSAMPLING_CHANCE * at_floor:
            return None
        return min(
            math.log(at_floor / max(num_candidates(num_kept) - above, 1.0) - 1), LARGEST_EPSILON
        )

    def non_edge_chance(self, floor: int, subsampling_rate: float | None) -> float:
        """Chance of a non-edge to be listed."""
        ratio = math.exp(-self.cell_epsilon)
        at_or_above = math.exp(-self.cell_epsilon * floor) / (1 + ratio)
        return at_or_above * (ratio + subsampling_chance(subsampling_rate) * (1 - ratio))


def num_candidates(num_kept: int) -> float:
    """How many non-edges to list where `num_kept` cells are kept: some to spare."""
    return 1.5 * num_kept + 100


def levels_above_floor(
    count: int, *, rate: float, subsampling_rate: float | None, noise: NoiseSource
) -> NDArray[np.int64]:
    """By how much listed cells exceed the floor: geometric, given that 0 is lucky.

    The odds of 0 are rounded; they are the same for edges and others, so privacy does not ask.
    """
    levels = draw_geometric(count, rate=rate, noise=noise)
    if subsampling_rate is None:
        return levels
    levels += 1
    odds = math.log(
        subsampling_chance(subsampling_rate) * math.expm1(rate)
    )  # of 0 against more: lucky (1 - r) : r
    rare = biased_coins(
        count, rate=min(max(abs(odds), SMALLEST_RATE), LARGEST_EPSILON), noise=noise
    )
    levels[rare if odds < 0 else ~rare] = 0
    return levels
