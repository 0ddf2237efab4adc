"""Laws of noisy edges on all graphs of three or four nodes, and what is drawn from them."""

import itertools
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.cells import cells_of
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.perturbed_graph import COUNT_SHARE, EdgeRand, LapGraph, release_graph, wanted
from vesper.mechanism.rare_cells import rates_of
from vesper.privacy.account import open_account
from vesper.privacy.budget import Budget
from vesper.privacy.ledger import Ledger

EPSILONS = (0.05, 0.3, 1.0, 4.0, 8.0, 9.0, 16.0, 40.0, 100.0)
Law = NDArray[np.float64]


def exact_chance(chance: float) -> mpmath.mpf:
    """The chance with which a cell is really chosen, from the rates that are really drawn."""
    skip, keep = rates_of(chance)
    chosen = -mpmath.expm1(-mpmath.mpf(skip))
    return chosen if keep is None else chosen / (1 + mpmath.exp(mpmath.mpf(keep)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_chance_of_a_flip_is_rounded_to_the_safe_side(epsilon: float) -> None:
    with mpmath.workdps(60):
        chance = exact_chance(EdgeRand(epsilon=epsilon).chance)
        needed = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert needed <= chance <= needed * (1 + mpmath.mpf(2) ** -38)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("num_nodes", [3, 4])
def test_edgerand_keeps_its_epsilon_on_all_small_graphs(num_nodes: int, epsilon: float) -> None:
    num_cells = num_nodes * (num_nodes - 1) // 2
    with mpmath.workdps(60):
        p = exact_chance(EdgeRand(epsilon=epsilon).chance)
        odds = [p**k * (1 - p) ** (num_cells - k) for k in range(num_cells + 1)]
        worst = max(
            odds[(graph ^ out).bit_count()] / odds[(graph ^ out ^ (1 << cell)).bit_count()]
            for graph in range(1 << num_cells)
            for out in range(1 << num_cells)
            for cell in range(num_cells)
        )
        assert worst <= mpmath.exp(mpmath.mpf(epsilon))
        assert worst > mpmath.exp(0.999 * mpmath.mpf(epsilon))  # the check can fail


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("floor", [1, 2, 3, 7])
@pytest.mark.parametrize("luck", [None, 0.41, 3.3, 20.0])
def test_a_noisy_cell_of_lapgraph_keeps_its_epsilon(
    epsilon: float, floor: int, luck: float | None
) -> None:
    with mpmath.workdps(200):
        rate = mpmath.mpf(LapGraph(epsilon=epsilon).cell_epsilon)
        ratio = mpmath.exp(-rate)
        lucky = 1 if luck is None else 1 / (1 + mpmath.exp(mpmath.mpf(luck)))
        asked = LapGraph(epsilon=epsilon).chance_of_others(floor, luck)
        if asked == 0:
            return  # beyond the range of floats; the floor of so large an epsilon is 1
        share = ratio + lucky * (1 - ratio)
        of_edge, of_other = ratio ** (floor - 1) / (1 + ratio) * share, exact_chance(asked)
        worst = max(of_edge / of_other, (1 - of_other) / (1 - of_edge), of_other / of_edge)
        assert worst <= mpmath.exp(rate)
        assert of_other <= ratio * of_edge * (1 + mpmath.mpf(2) ** -37)


def law_of_lapgraph(
    graph: tuple[int, ...], *, epsilon: float, order: list[int], lucky: float = 1.0
) -> Law:
    """P(output) over all graphs on three nodes, whose cells are 0, 1, 2; ties fall by `order`."""
    mechanism = LapGraph(epsilon=epsilon)
    ratio, levels = math.exp(-mechanism.cell_epsilon), math.ceil(36 / mechanism.cell_epsilon)
    law = np.zeros(8)
    counts = np.arange(-4000, 4000)
    of_count = np.exp(-epsilon * COUNT_SHARE * np.abs(counts - sum(graph)))
    of_count /= of_count.sum()
    of_kept = np.bincount(counts.clip(0, 3), weights=of_count, minlength=4)
    # value 0 stands for all below 1 and the unlucky at 1; then 1, 2, .. levels
    tail = (1 - ratio) * ratio ** np.arange(levels)
    tail[0] *= lucky
    cell_laws = []
    for is_edge in graph:
        above = (1 if is_edge else ratio) / (1 + ratio)
        cell_laws.append(np.concatenate([[1 - above * tail.sum()], above * tail]))
    for values in itertools.product(range(levels + 1), repeat=3):
        chance = math.prod(cell_laws[cell][value] for cell, value in enumerate(values))
        ranked = sorted(
            (c for c in range(3) if values[c] >= 1), key=lambda c: (-values[c], order[c])
        )
        for kept in range(4):
            law[sum(1 << cell for cell in ranked[:kept])] += chance * of_kept[kept]
    return law


def public_order() -> list[int]:
    """How ties between the cells of three nodes fall."""
    from vesper.mechanism.cells import shuffled_order

    order = shuffled_order(np.arange(3), np.zeros(3, dtype=np.int64))
    return [int(place) for place in np.argsort(order)]


@pytest.mark.parametrize("lucky", [1.0, 0.3, 0.01])
def test_lapgraph_keeps_its_epsilon_on_all_graphs_of_three_nodes(lucky: float) -> None:
    epsilon, order = 3.0, public_order()
    laws = {
        graph: law_of_lapgraph(graph, epsilon=epsilon, order=order, lucky=lucky)
        for graph in itertools.product((0, 1), repeat=3)
    }
    worst = 0.0
    for graph, law in laws.items():
        assert law.sum() == pytest.approx(1, abs=1e-9)
        for cell in range(3):
            other = tuple(value ^ (k == cell) for k, value in enumerate(graph))
            worst = max(worst, float((law / laws[other]).max()))
    assert worst <= math.exp(epsilon) * (1 + 1e-9)
    assert worst > math.exp((0.999 if lucky == 1 else 0.98) * epsilon)


def drawn(mechanism: EdgeRand | LapGraph, graph: Graph, times: int) -> Law:
    noise = NoiseSource.for_simulation(5)
    counts = np.zeros(8)
    for _ in range(times):
        counts[sum(1 << int(cell) for cell in cells_of(mechanism.perturb(graph, noise)))] += 1
    return counts


def test_what_edgerand_draws_has_the_law() -> None:
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])  # cells 0 and 2
    p = 1 / (1 + math.exp(1.0))
    expected = np.array(
        [p**k * (1 - p) ** (3 - k) for k in ((0b101 ^ h).bit_count() for h in range(8))]
    )
    assert_follows(drawn(EdgeRand(epsilon=1.0), graph, 3000), expected)


def test_what_lapgraph_draws_has_the_law() -> None:
    graph = Graph.from_edges(3, [(0, 1)])  # cell 0
    expected = law_of_lapgraph((1, 0, 0), epsilon=3.0, order=public_order())
    counts = drawn(LapGraph(epsilon=3.0), graph, 3000)
    assert_follows(counts, expected)
    with pytest.raises(AssertionError):
        assert_follows(counts, law_of_lapgraph((1, 0, 0), epsilon=3.6, order=public_order()))


@pytest.mark.parametrize("luck", [0.5, 3.0])
def test_what_lapgraph_draws_with_luck_has_the_law(
    luck: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LapGraph, "luck", lambda *_: luck)
    graph = Graph.from_edges(3, [(0, 1), (0, 2)])  # cells 0 and 1
    counts = drawn(LapGraph(epsilon=3.0), graph, 3000)
    lucky, order = 1 / (1 + math.exp(luck)), public_order()
    assert_follows(counts, law_of_lapgraph((1, 1, 0), epsilon=3.0, order=order, lucky=lucky))
    with pytest.raises(AssertionError):  # everybody lucky
        assert_follows(counts, law_of_lapgraph((1, 1, 0), epsilon=3.0, order=order))


def assert_follows(counts: Law, law: Law) -> None:
    """Pearson's statistic below the 99.99 % point of seven degrees of freedom."""
    expected = counts.sum() * law
    assert float((np.square(counts - expected) / expected).sum()) < 29.9


@pytest.mark.parametrize("mechanism", [EdgeRand(epsilon=9.0), LapGraph(epsilon=9.0)])
def test_most_edges_stay_when_epsilon_is_large(mechanism: EdgeRand | LapGraph) -> None:
    ring = Graph.from_edges(400, [(k, (k + 1) % 400) for k in range(400)])
    noisy = mechanism.perturb(ring, NoiseSource.for_simulation(1))
    kept = len(np.intersect1d(cells_of(ring), cells_of(noisy)))
    assert kept > 370
    assert abs(noisy.num_edges - 400) < 60
    again = mechanism.perturb(ring, NoiseSource.for_simulation(1))
    assert np.array_equal(again.neighbors, noisy.neighbors)


@pytest.mark.parametrize("mechanism", [EdgeRand(epsilon=1.0), LapGraph(epsilon=1.0)])
@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_tiny_and_empty_graphs(mechanism: EdgeRand | LapGraph, num_nodes: int) -> None:
    noisy = mechanism.perturb(Graph.from_edges(num_nodes, []), NoiseSource.for_simulation(0))
    assert noisy.num_nodes == num_nodes
    assert noisy.num_edges <= num_nodes * (num_nodes - 1) // 2


def test_too_many_flips_are_refused_before_anything_is_drawn() -> None:
    with pytest.raises(InputError, match=r"at most 60,000,000 noisy cells, got about .*larger eps"):
        EdgeRand(epsilon=1.0).refuse_many(1_000_000)
    EdgeRand(epsilon=1.0).refuse_many(10_000)
    EdgeRand(epsilon=20.0).refuse_many(1_000_000)  # few of very many are kept
    with pytest.raises(
        InputError, match=r"at most 2,000,000,000 draws, got 49,999,995,000,000 pai"
    ):
        EdgeRand(epsilon=20.0).refuse_many(10_000_000)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0, 8.0, 16.0])
def test_lapgraph_lists_no_more_cells_than_it_needs(epsilon: float) -> None:
    """As many as are kept, with some to spare, and not all that are alike."""
    kept, num_cells = 1_000_000, 170_000_000_000
    mechanism = LapGraph(epsilon=epsilon)
    floor = mechanism.floor(kept, num_cells)
    luck = mechanism.luck(kept, num_cells, floor)
    listed = num_cells * mechanism.chance_of_others(floor, luck)
    assert listed < 2.6 * wanted(kept)
    assert listed > 0.99 * wanted(kept) or floor == 1
    if epsilon == 8:
        assert luck is not None
        assert num_cells * mechanism.chance_of_others(floor, None) > 60_000_000


def test_a_graph_with_luck_is_as_large_as_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(0, 3000, (2000, 2)), axis=1), axis=0)
    graph = Graph.from_edges(3000, [(int(u), int(v)) for u, v in pairs if u != v])
    mechanism, kept = LapGraph(epsilon=4.0), []
    for seed in range(4):
        noisy = mechanism.perturb(graph, NoiseSource.for_simulation(seed))
        assert abs(noisy.num_edges - graph.num_edges) < 300
        kept.append(len(np.intersect1d(cells_of(graph), cells_of(noisy))))
    assert mechanism.luck(graph.num_edges, 3000 * 2999 // 2, 1) is not None
    monkeypatch.setattr(LapGraph, "luck", lambda *_: None)
    for seed in range(4):
        noisy = mechanism.perturb(graph, NoiseSource.for_simulation(seed))
        kept.append(len(np.intersect1d(cells_of(graph), cells_of(noisy))))
    deviation = np.sqrt(np.mean(kept))
    assert abs(np.mean(kept[:4]) - np.mean(kept[4:])) < 4 * deviation


@pytest.mark.parametrize("mechanism", [EdgeRand, LapGraph])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 101.0, math.inf, math.nan])
def test_an_epsilon_out_of_range_is_refused(
    mechanism: type[EdgeRand] | type[LapGraph], epsilon: float
) -> None:
    with pytest.raises(InputError, match=r"expected between 0\.05 and 100"):
        mechanism(epsilon=epsilon)


def test_a_receipt_of_another_event_buys_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    graph = Graph.from_edges(4, [(0, 1)])
    account = open_account(ledger, "g", num_nodes=4, budget=Budget(epsilon=4.0, delta=1e-6))
    receipt = account.charge(EdgeRand(epsilon=1.0).event, None, run="r")
    noise = NoiseSource.for_simulation(0)
    with pytest.raises(BudgetError):
        release_graph(graph, EdgeRand(epsilon=3.0), receipt=receipt, fingerprint="g", noise=noise)
    release_graph(graph, EdgeRand(epsilon=1.0), receipt=receipt, fingerprint="g", noise=noise)
    with pytest.raises(BudgetError):
        release_graph(graph, EdgeRand(epsilon=1.0), receipt=receipt, fingerprint="g", noise=noise)
