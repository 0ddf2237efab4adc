"""LapGraph (Wu et al. 2022): the largest noisy cells, about as many as there are edges.

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
"""Share of epsilon spent on the number of edges, as published."""

MAX_KEPT_EDGES = 15_000_000
"""Most edges of the noisy graph: candidates for this many fit into memory, whatever is drawn."""

MAX_SUBSAMPLING_CHANCE = 0.4
"""Subsampling with a larger chance is not worth it: twice as many cells are no burden."""

SMALLEST_RATE = 1e-3
"""Smallest rate of draws on which privacy does not depend."""


@dataclass(frozen=True, kw_only=True)
class LapGraph:
    """The largest of all noisy cells, as many as there are edges up to noise.

    Noise is two-sided geometric. Cells whose noisy value is below `floor` >= 1 are never kept, even
    when fewer than T are left then: nearly all of them are non-edges, and there are very many.
    Where far more cells are at the floor itself than are needed, each is listed only if it passes a
    random draw of rate `subsampling_rate`: which of them are kept would be arbitrary anyway.

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
        """Charge for all of epsilon."""
        return PureRelease(epsilon=self.epsilon, what="largest noisy cells")

    @property
    def cell_epsilon(self) -> float:
        """Epsilon that is left for the cells, rounded down."""
        return self.epsilon * (1 - COUNT_SHARE) * (1 - 2.0**-50)

    def refuse_many(self, num_nodes: int) -> None:
        """Refuse graphs that take too many draws, even if the noisy count is small."""
        refuse_many(num_cells_of(num_nodes), chance=0.0)

    def perturb(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Draw the number of edges, then pick the cells."""
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
        )  # the same law for edges and non-edges
        best = descending_order(cells, noisy)[:num_kept]
        return graph_of(np.sort(cells[best]), num_nodes=graph.num_nodes)

    def floor(self, num_kept: int, num_cells: int) -> int:
        """Largest value that about `num_candidates` non-edges reach; at least 1."""
        ratio = max(num_cells, 1) / ((1 + math.exp(-self.cell_epsilon)) * num_candidates(num_kept))
        return max(1, math.floor(math.log(ratio) / self.cell_epsilon))

    def subsampling_rate(self, num_kept: int, num_cells: int, floor: int) -> float | None:
        """Rate of the draw that cells at the floor must pass to be listed; None: all are listed.

        It is chosen such that about `num_candidates` non-edges are listed.
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
        """Chance that a non-edge is listed."""
        ratio = math.exp(-self.cell_epsilon)
        at_or_above = math.exp(-self.cell_epsilon * floor) / (1 + ratio)
        return at_or_above * (ratio + subsampling_chance(subsampling_rate) * (1 - ratio))


def num_candidates(num_kept: int) -> float:
    """How many non-edges to list when `num_kept` cells are kept: some to spare."""
    return 1.5 * num_kept + 100


def levels_above_floor(
    count: int, *, rate: float, subsampling_rate: float | None, noise: NoiseSource
) -> NDArray[np.int64]:
    """By how much listed cells exceed the floor: geometric, with cells at the floor subsampled.

    The odds of 0 are rounded, but are the same for edges and non-edges, so the rounding does not
    affect privacy.
    """
    levels = draw_geometric(count, rate=rate, noise=noise)
    if subsampling_rate is None:
        return levels
    levels += 1
    odds = math.log(
        subsampling_chance(subsampling_rate) * math.expm1(rate)
    )  # odds of 0 against more: chance (1 - r) : r, where r = exp(-rate)
    rare = biased_coins(
        count, rate=min(max(abs(odds), SMALLEST_RATE), LARGEST_EPSILON), noise=noise
    )
    levels[rare if odds < 0 else ~rare] = 0
    return levels
