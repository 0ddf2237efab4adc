import itertools
import math

import mpmath
import numpy as np
import pytest
from tests.mechanism.noisy_graph.noisy_laws import (
    EPSILONS,
    Law,
    assert_follows,
    exact_chance,
    observed_counts,
)

from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph import lapgraph
from vesper.mechanism.noisy_graph.lapgraph import (
    COUNT_SHARE,
    MAX_KEPT_EDGES,
    LapGraph,
    num_candidates,
)
from vesper.mechanism.noisy_graph.node_pairs import cells_of, descending_order
from vesper.mechanism.noisy_graph.rare_pairs import refuse_many


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("floor", [1, 2, 3, 7])
@pytest.mark.parametrize("subsampling_rate", [None, 0.41, 3.3, 20.0])
def test_a_noisy_cell_of_lapgraph_keeps_its_epsilon(
    epsilon: float, floor: int, subsampling_rate: float | None
) -> None:
    with mpmath.workdps(200):
        rate = mpmath.mpf(LapGraph(epsilon=epsilon).cell_epsilon)
        ratio = mpmath.exp(-rate)
        subsampling_chance = (
            1 if subsampling_rate is None else 1 / (1 + mpmath.exp(mpmath.mpf(subsampling_rate)))
        )
        non_edge_chance = LapGraph(epsilon=epsilon).non_edge_chance(floor, subsampling_rate)
        if non_edge_chance == 0:
            return  # beyond the range of floats; the floor of so large an epsilon is 1
        share = ratio + subsampling_chance * (1 - ratio)
        of_edge, of_other = (
            ratio ** (floor - 1) / (1 + ratio) * share,
            exact_chance(non_edge_chance),
        )
        worst = max(of_edge / of_other, (1 - of_other) / (1 - of_edge), of_other / of_edge)
        assert worst <= mpmath.exp(rate)
        assert of_other <= ratio * of_edge * (1 + mpmath.mpf(2) ** -37)


def law_of_lapgraph(
    graph: tuple[int, ...],
    *,
    epsilon: float,
    order: list[int],
    subsampling_chance: float = 1.0,
    floor: int = 1,
) -> Law:
    """P(output) over all graphs on three nodes, with cells 0, 1, 2; ties are broken by `order`."""
    mechanism = LapGraph(epsilon=epsilon)
    ratio, levels = math.exp(-mechanism.cell_epsilon), math.ceil(36 / mechanism.cell_epsilon)
    law = np.zeros(8)
    counts = np.arange(-4000, 4000)
    count_law = np.exp(-epsilon * COUNT_SHARE * np.abs(counts - sum(graph)))
    count_law /= count_law.sum()
    num_kept_law = np.bincount(counts.clip(0, 3), weights=count_law, minlength=4)
    # Value 0 means below the floor or dropped at it; the others are levels from the floor on.
    tail = (1 - ratio) * ratio ** np.arange(levels)
    tail[0] *= subsampling_chance
    cell_laws = []
    for is_edge in graph:
        above = ratio ** (floor - is_edge) / (1 + ratio)
        cell_laws.append(np.concatenate([[1 - above * tail.sum()], above * tail]))
    for values in itertools.product(range(levels + 1), repeat=3):
        chance = math.prod(cell_laws[cell][value] for cell, value in enumerate(values))
        ranked = sorted(
            (c for c in range(3) if values[c] >= 1), key=lambda c: (-values[c], order[c])
        )
        for num_kept in range(4):
            law[sum(1 << cell for cell in ranked[:num_kept])] += chance * num_kept_law[num_kept]
    return law


def public_order() -> list[int]:
    """Rank of the three cells when their values are tied."""
    order = descending_order(np.arange(3), np.zeros(3, dtype=np.int64))
    return [int(place) for place in np.argsort(order)]


@pytest.mark.parametrize("subsampling_chance", [1.0, 0.3, 0.01])
def test_lapgraph_keeps_its_epsilon_on_all_graphs_of_three_nodes(subsampling_chance: float) -> None:
    epsilon, order = 3.0, public_order()
    laws = {
        graph: law_of_lapgraph(
            graph, epsilon=epsilon, order=order, subsampling_chance=subsampling_chance
        )
        for graph in itertools.product((0, 1), repeat=3)
    }
    worst = 0.0
    for graph, law in laws.items():
        assert law.sum() == pytest.approx(1, abs=1e-9)
        for cell in range(3):
            other = tuple(value ^ (k == cell) for k, value in enumerate(graph))
            worst = max(worst, float((law / laws[other]).max()))
    assert worst <= math.exp(epsilon) * (1 + 1e-9)
    assert worst > math.exp((0.999 if subsampling_chance == 1 else 0.98) * epsilon)


def test_lapgraph_draws_follow_the_law() -> None:
    graph = Graph.from_edges(3, [(0, 1)])  # cell 0
    expected = law_of_lapgraph((1, 0, 0), epsilon=3.0, order=public_order())
    counts = observed_counts(LapGraph(epsilon=3.0), graph, 3000)
    assert_follows(counts, expected)
    with pytest.raises(AssertionError):
        assert_follows(counts, law_of_lapgraph((1, 0, 0), epsilon=3.6, order=public_order()))


@pytest.mark.parametrize("subsampling_rate", [0.5, 3.0])
def test_subsampled_lapgraph_draws_follow_the_law(
    subsampling_rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LapGraph, "subsampling_rate", lambda *_: subsampling_rate)
    graph = Graph.from_edges(3, [(0, 1), (0, 2)])  # cells 0 and 1
    counts = observed_counts(LapGraph(epsilon=3.0), graph, 3000)
    subsampling_chance, order = 1 / (1 + math.exp(subsampling_rate)), public_order()
    assert_follows(
        counts,
        law_of_lapgraph((1, 1, 0), epsilon=3.0, order=order, subsampling_chance=subsampling_chance),
    )
    with pytest.raises(AssertionError):  # the law without subsampling
        assert_follows(counts, law_of_lapgraph((1, 1, 0), epsilon=3.0, order=order))


@pytest.mark.parametrize(("floor", "subsampling_rate"), [(2, None), (3, 0.5)])
def test_lapgraph_draws_above_a_floor_follow_the_law(
    floor: int, subsampling_rate: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LapGraph, "floor", lambda *_: floor)
    monkeypatch.setattr(LapGraph, "subsampling_rate", lambda *_: subsampling_rate)
    graph, order = Graph.from_edges(3, [(0, 1), (0, 2)]), public_order()  # cells 0 and 1
    counts = observed_counts(LapGraph(epsilon=1.0), graph, 4000)
    share = 1.0 if subsampling_rate is None else 1 / (1 + math.exp(subsampling_rate))
    law = law_of_lapgraph(
        (1, 1, 0), epsilon=1.0, order=order, subsampling_chance=share, floor=floor
    )
    assert_follows(counts, law)
    lower = law_of_lapgraph((1, 1, 0), epsilon=1.0, order=order, subsampling_chance=share, floor=1)
    with pytest.raises(AssertionError):  # the law without the floor
        assert_follows(counts, lower)


@pytest.mark.parametrize("seed", range(4))
def test_floor_rate_and_size_depend_on_the_noisy_count_only(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Graph.from_edges(900, [(k, (k + 1) % 900) for k in range(900)])
    mechanism, num_cells = LapGraph(epsilon=0.5), 900 * 899 // 2
    count = np.array([900], dtype=np.int32)
    NoiseSource.for_simulation(seed).add_laplace_to(count, epsilon=0.5 * COUNT_SHARE)
    num_kept = max(int(count[0]), 0)
    assert num_kept != 900
    calls: list[tuple[int, ...]] = []
    floor, subsampling_rate = LapGraph.floor, LapGraph.subsampling_rate

    def recorded_floor(self: LapGraph, *arguments: int) -> int:
        calls.append(arguments)
        return floor(self, *arguments)

    def recorded_rate(self: LapGraph, *arguments: int) -> float | None:
        calls.append(arguments)
        return subsampling_rate(self, *arguments)

    monkeypatch.setattr(LapGraph, "floor", recorded_floor)
    monkeypatch.setattr(LapGraph, "subsampling_rate", recorded_rate)
    noisy = mechanism.perturb(ring, NoiseSource.for_simulation(seed))
    expected_floor = floor(mechanism, num_kept, num_cells)
    assert calls == [(num_kept, num_cells), (num_kept, num_cells, expected_floor)]
    assert noisy.num_edges == num_kept


def test_listed_cells_fit_however_large_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for epsilon in (0.05, 0.7, 3.0, 4.0, 8.0, 30.0):
        for num_nodes in (20_000, 600_000, 2_000_000):
            mechanism, num_cells = LapGraph(epsilon=epsilon), num_nodes * (num_nodes - 1) // 2
            floor = mechanism.floor(MAX_KEPT_EDGES, num_cells)
            subsampling_rate = mechanism.subsampling_rate(MAX_KEPT_EDGES, num_cells, floor)
            # Never refuses.
            refuse_many(num_cells, chance=mechanism.non_edge_chance(floor, subsampling_rate))
    monkeypatch.setattr(lapgraph, "MAX_KEPT_EDGES", 300)
    ring = Graph.from_edges(900, [(k, (k + 1) % 900) for k in range(900)])
    assert LapGraph(epsilon=9.0).perturb(ring, NoiseSource.for_simulation(1)).num_edges == 300


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0, 8.0, 16.0])
def test_lapgraph_lists_no_more_cells_than_it_needs(epsilon: float) -> None:
    """About `num_candidates` cells are listed, not all that are at the floor."""
    num_kept, num_cells = 1_000_000, 170_000_000_000
    mechanism = LapGraph(epsilon=epsilon)
    floor = mechanism.floor(num_kept, num_cells)
    subsampling_rate = mechanism.subsampling_rate(num_kept, num_cells, floor)
    listed = num_cells * mechanism.non_edge_chance(floor, subsampling_rate)
    assert listed < 2.6 * num_candidates(num_kept)
    assert listed > 0.99 * num_candidates(num_kept) or floor == 1
    if epsilon == 8:
        assert subsampling_rate is not None
        assert num_cells * mechanism.non_edge_chance(floor, None) > 60_000_000


def test_subsampling_does_not_change_the_number_of_true_edges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(0, 3000, (2000, 2)), axis=1), axis=0)
    graph = Graph.from_edges(3000, [(int(u), int(v)) for u, v in pairs if u != v])
    mechanism, num_kept = LapGraph(epsilon=4.0), []
    for seed in range(4):
        noisy = mechanism.perturb(graph, NoiseSource.for_simulation(seed))
        assert abs(noisy.num_edges - graph.num_edges) < 300
        num_kept.append(len(np.intersect1d(cells_of(graph), cells_of(noisy))))
    assert mechanism.subsampling_rate(graph.num_edges, 3000 * 2999 // 2, 1) is not None
    monkeypatch.setattr(LapGraph, "subsampling_rate", lambda *_: None)
    for seed in range(4):
        noisy = mechanism.perturb(graph, NoiseSource.for_simulation(seed))
        num_kept.append(len(np.intersect1d(cells_of(graph), cells_of(noisy))))
    deviation = np.sqrt(np.mean(num_kept))
    assert abs(np.mean(num_kept[:4]) - np.mean(num_kept[4:])) < 4 * deviation
