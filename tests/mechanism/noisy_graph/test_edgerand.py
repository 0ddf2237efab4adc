import math

import mpmath
import numpy as np
import pytest
from tests.mechanism.noisy_graph.noisy_laws import (
    EPSILONS,
    assert_follows,
    exact_chance,
    observed_counts,
)

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.rare_pairs import biased_coins, refuse_many


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_flip_chance_is_rounded_up(epsilon: float) -> None:
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


def test_edgerand_draws_follow_the_law() -> None:
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])  # cells 0 and 2
    p = 1 / (1 + math.exp(1.0))
    expected = np.array(
        [p**k * (1 - p) ** (3 - k) for k in ((0b101 ^ h).bit_count() for h in range(8))]
    )
    assert_follows(observed_counts(EdgeRand(epsilon=1.0), graph, 3000), expected)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("num_nodes", [100_000, 600_000, 1_000_000])
def test_a_cell_of_a_thinned_graph_keeps_its_epsilon(epsilon: float, num_nodes: int) -> None:
    mechanism, num_cells = EdgeRand(epsilon=epsilon), num_nodes * (num_nodes - 1) // 2
    subsampling_rate, non_edge_chance = (
        mechanism.subsampling_rate(num_cells),
        mechanism.non_edge_chance(num_cells),
    )
    if subsampling_rate is None:
        assert num_cells * non_edge_chance < 60_000_000
        return
    assert num_cells * non_edge_chance == pytest.approx(30_000_000)
    mechanism.refuse_many(num_nodes)
    with mpmath.workdps(60):
        p, q = (1 / (1 + mpmath.exp(mpmath.mpf(rate))) for rate in (epsilon, subsampling_rate))
        of_edge, of_other = q * (1 - p), exact_chance(non_edge_chance)
        ratios = of_edge / of_other, (1 - of_other) / (1 - of_edge)
        assert max(*ratios, 1 / ratios[0], 1 / ratios[1]) <= mpmath.exp(mpmath.mpf(epsilon))
        assert ratios[0] > mpmath.exp(0.999 * mpmath.mpf(epsilon))  # tight


def test_thinned_edgerand_draws_follow_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EdgeRand, "subsampling_rate", lambda *_: 0.7)
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])  # cells 0 and 2
    p, q = 1 / (1 + math.exp(1.0)), 1 / (1 + math.exp(0.7))
    of_cell = [q * (1 - p), q * p, q * (1 - p)]
    law = np.array(
        [math.prod(c if h >> k & 1 else 1 - c for k, c in enumerate(of_cell)) for h in range(8)]
    )
    counts = observed_counts(EdgeRand(epsilon=1.0), graph, 3000)
    assert_follows(counts, law)
    with pytest.raises(AssertionError):  # the law without thinning
        assert_follows(
            counts, np.array([p**k * (1 - p) ** (3 - k) for k in (2, 1, 3, 2, 1, 0, 2, 1)])
        )


@pytest.mark.parametrize(("epsilon", "num_nodes"), [(1.0, 21_124), (4.0, 81_682), (8.0, 598_200)])
def test_draws_are_possible_just_above_the_limit(epsilon: float, num_nodes: int) -> None:
    mechanism, num_cells = EdgeRand(epsilon=epsilon), num_nodes * (num_nodes - 1) // 2
    assert 60_000_000 < num_cells * mechanism.chance < 60_003_000
    subsampling_rate = mechanism.subsampling_rate(num_cells)
    assert subsampling_rate is not None
    biased_coins(10, rate=subsampling_rate, noise=NoiseSource.for_simulation(0))


def test_too_many_draws_are_refused_before_anything_is_drawn() -> None:
    EdgeRand(epsilon=1.0).refuse_many(1_000_000)  # many are dropped
    EdgeRand(epsilon=20.0).refuse_many(1_000_000)  # few of very many are flipped
    with pytest.raises(
        InputError, match=r"at most 2,000,000,000 draws, got 49,999,995,000,000 pai"
    ):
        EdgeRand(epsilon=20.0).refuse_many(10_000_000)
    with pytest.raises(InputError, match=r"at most 60,000,000 noisy cells, got about .*larger eps"):
        refuse_many(10**12, chance=0.01)
