"""Errata 1, 2, 3 and 10: what sampling of roots and neighbours does and does not hide."""

import importlib
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from vesper.graph.edges.edge_relation import all_graphs, edges_of, has_edge, toggle_edge
from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.mechanism.reference.certify import certified_move
from vesper.mechanism.reference.gin import GinAggregation
from vesper.privacy.accounting.gaussian import delta_of, epsilon_of
from vesper.privacy.accounting.safe_numbers import safe_side
from vesper.privacy.accounting.theorem_1 import max_roots_touched
from vesper.privacy.planning.paper_plan import PAPER_DATASETS, PaperDataset, compare

pld: Any = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")

DATASETS = {dataset.name: dataset for dataset in PAPER_DATASETS}


# 1: gamma


def two_layers_at_most(dataset: PaperDataset, *, noise_std: float, common: int) -> float:
    """Upper bound on epsilon of the forward pass, degrees at most D, `common` shared neighbours.

    Once per epoch, an endpoint reveals two rows, each moved by at most one message: four units of
    1 / noise_std^2 for both endpoints. A neighbour w of an endpoint reveals one layer-2 row,
    computed from the endpoint's perturbed layer-1 row (one unit, or two if w is a neighbour of
    both) after normalisation, and then perturbed again. The last noise hides a point of the unit
    ball up to a total variation of `reach`, and E_gamma shrinks by at least that factor (Balle,
    Barthe, Gaboardi and Geumlek 2019). This is equivalent to a party that sees the units with that
    chance and nothing otherwise, so the number of units seen is a sum of independent coins.

    Roots in the same batch share the perturbed row: m rows have a reach of
    2 Phi(sqrt(m) x) - 1 <= 1 - (1 - (2 Phi(x) - 1))^m, as squares of normals have a falling
    hazard rate, so counting them separately is an upper bound.
    """
    epochs, others = dataset.num_epochs, dataset.max_degree - 1

    def reach(diameter: float) -> float:
        return 2 * float(ndtr(diameter / 2 / noise_std)) - 1

    single = stats.binom(2 * (others - common) * epochs, reach(2.0)).pmf
    double = stats.binom(common * epochs, reach(4.0)).pmf
    chances: dict[int, float] = {}  # number of units seen -> its probability
    for i in range(2 * (others - common) * epochs + 1):
        for j in range(common * epochs + 1):
            chance = float(single(i)) * float(double(j))
            if chance > 1e-18:
                chances[i + 2 * j] = chances.get(i + 2 * j, 0.0) + chance
    missing = 1e-18 * (2 * others * epochs + 1) ** 2

    def holds(epsilon: float) -> bool:
        deltas = (
            chance * delta_of(mu=math.sqrt(4 * epochs + units) / noise_std, epsilon=epsilon)
            for units, chance in chances.items()
        )
        return missing + sum(deltas) <= dataset.delta

    return safe_side(holds, safe=8.0, unsafe=0.0, relative_gap=1e-4)


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [("products", 0.21, 0.345), ("reddit", 0.18, 0.301), ("finance", 0.84, 1.811)],
)
def test_1_two_layers_lie_between(name: str, lowest: float, highest: float) -> None:
    dataset = DATASETS[name]
    row = compare(dataset=dataset, layers=2, epsilon=1.0)
    bounds = [
        two_layers_at_most(dataset, noise_std=row.paper_noise_std, common=common)
        for common in (0, dataset.max_degree // 2, dataset.max_degree - 1)
    ]
    assert bounds == sorted(bounds)  # sharing all neighbours is the worst case
    assert bounds[-1] == pytest.approx(highest, abs=0.002)
    assert row.true_epsilon_lower_bound == pytest.approx(lowest, abs=0.01)
    # Without the second noise each of the N_e roots would count in full.
    units = max_roots_touched(max_degree=dataset.max_degree, num_layers=2) * dataset.num_epochs
    in_full = epsilon_of(mu=math.sqrt(units) / row.paper_noise_std, delta=dataset.delta)
    assert in_full > 1.7 * bounds[-1]


def test_1_rows_that_share_a_batch_are_hidden_better_than_apart() -> None:
    for noise_std in (0.5, 2.0, 10.3, 72.5):
        for many in range(1, 20):
            together = 2 * ndtr(math.sqrt(many) / noise_std) - 1
            apart = 1 - (2 * ndtr(-1 / noise_std)) ** many
            assert together <= apart * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "expected"), [("products", 43.5), ("reddit", 42.1), ("finance", 27.7)]
)
def test_1_at_claimed_32(name: str, expected: float) -> None:
    row = compare(dataset=DATASETS[name], layers=1, epsilon=32.0)
    assert row.true_epsilon_lower_bound == pytest.approx(expected, abs=0.05)


# 2: "includes each edge more often, so it is less private"


def test_2_a_lower_inclusion_probability_can_be_less_private() -> None:
    """One unit message, noise 1: a known coin of 1/2 gives 4 times the delta of a secret 3/5."""
    epsilon, known_rate, secret_rate = 3.0, 0.5, 0.6
    known = known_rate * delta_of(mu=1.0, epsilon=epsilon)
    # secret: (1 - q) N(0, 1) + q N(1, 1) against N(0, 1); the ratio exceeds e^epsilon beyond `at`
    at = math.log((math.exp(epsilon) - (1 - secret_rate)) / secret_rate) + 0.5
    tail = secret_rate * ndtr(1 - at) + (1 - secret_rate) * ndtr(-at)
    secret = float(tail - math.exp(epsilon) * ndtr(-at))
    assert (known, secret) == pytest.approx((7.7e-4, 1.9e-4), rel=0.03)
    assert known_rate < secret_rate
    assert known > 4 * secret


def test_2_a_replaced_edge_costs_root_six() -> None:
    operator = GinAggregation().operator
    most = 0.0
    for graph in all_graphs(4):
        edges = set(edges_of(graph))
        for removed in edges:
            for new in set(combinations(range(4), 2)) - edges:
                replaced = toggle_edge(toggle_edge(graph, removed), new)
                most = max(most, float(certified_move(operator(graph) - operator(replaced))))
    assert most == pytest.approx(math.sqrt(6))


# 3: sampled neighbour sets


def swapped(name: str, *, degree_over_max: float) -> float:
    """True epsilon at claimed 1, one layer, for endpoints of degree `degree_over_max` times D.

    The sampled set contains the other endpoint with probability D / degree, and then lacks one of
    the other neighbours; if their messages are opposite to the endpoint's, the row moves by 2.
    """
    dataset: PaperDataset = DATASETS[name]
    noise_std = compare(dataset=dataset, layers=1, epsilon=1.0).paper_noise_std
    rate = 1 / degree_over_max
    loss = pld.from_mixture_gaussian_mechanism(
        standard_deviation=noise_std,
        sensitivities=[0.0, 2.0],
        sampling_probs=[1 - rate, rate],
        value_discretization_interval=0.02,
    )
    total = loss.self_compose(2 * dataset.num_epochs)  # each endpoint is a root once per epoch
    return float(total.get_epsilon_for_delta(dataset.delta))


@pytest.mark.parametrize(
    ("name", "expected"), [("products", 14.9), ("reddit", 13.1), ("finance", 17.1)]
)
def test_3_worst_at_one_neighbour_more_than_is_sampled(name: str, expected: float) -> None:
    degree = DATASETS[name].max_degree
    assert swapped(name, degree_over_max=(degree + 1) / degree) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("name", "expected"), [("products", 1.5), ("reddit", 1.2), ("finance", 4.5)]
)
def test_3_secret_sampling_helps_hubs(name: str, expected: float) -> None:
    assert swapped(name, degree_over_max=20.0) == pytest.approx(expected, abs=0.05)


def test_3_the_sampler_swaps_a_neighbour_in() -> None:
    # Node 0 has D + 1 = 4 neighbours; the edge to 1, which has the opposite message, is removed.
    graph = Graph.from_edges(5, [(0, k) for k in range(1, 5)])
    messages = np.array([0.0, 1.0, -1.0, -1.0, -1.0])

    def sums(each: Graph) -> list[float]:
        sampler = Sampler(each, num_layers=1, max_degree=3, seed=5)
        rows = []
        for step in range(400):
            batch = sampler.sample(np.array([0]), step=step)
            rows.append(float(messages[batch.nodes[batch.layers[0].indices]].sum()))
        return rows

    assert set(sums(toggle_edge(graph, (0, 1)))) == {-3.0}
    with_edge = sums(graph)
    assert set(with_edge) == {-3.0, -1.0}  # a shift of 2, not of 1
    # probability 3/4; tolerance of five standard deviations of 400 draws
    assert with_edge.count(-1.0) / 400 == pytest.approx(0.75, abs=5 * math.sqrt(0.75 * 0.25 / 400))


# 10: embeddings of all nodes of the sampled subgraph


def test_10_the_index_set_of_the_subgraph_names_the_neighbours() -> None:
    graph = Graph.from_edges(6, [(0, 1), (1, 2), (3, 4)])
    other = toggle_edge(graph, (0, 5))
    assert not has_edge(graph, (0, 5))
    node_sets = []
    for each in (graph, other):
        batch = Sampler(each, num_layers=1, max_degree=3, seed=1).sample(np.array([0, 3]), step=0)
        node_sets.append(set(batch.nodes.tolist()))
        assert batch.roots.tolist() == [0, 3]  # what Algorithm 3 sends reveals nothing
    assert node_sets == [
        {0, 1, 3, 4},
        {0, 1, 3, 4, 5},
    ]  # what Theorem 1 releases reveals the edge, without noise
