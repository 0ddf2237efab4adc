"""Where query nodes have fewer neighbours, heads learn from sums scaled to that degree."""

import numpy as np
import pytest
import torch

from vesper import Vesper
from vesper.method.certified.query_nodes import DegreeMatching, degree_ratio

NODES, LABELLED, QUERY = 6000, np.arange(2000), np.arange(3000, 6000)


def noisy_degrees(query_degree: float, *, noise_std: float, seed: int = 0) -> torch.Tensor:
    """Degrees of mean 10, and of this mean at query nodes, with noise."""
    rng = np.random.default_rng(seed)
    mean = np.full(NODES, 10.0)
    mean[QUERY] = query_degree
    return torch.from_numpy(rng.poisson(mean) + rng.normal(0, noise_std, NODES))


@pytest.mark.parametrize("noise_std", [0.0, 3.0, 20.0])
@pytest.mark.parametrize("query_degree", [0.0, 2.0, 5.0])
def test_degree_ratio_is_measured_where_it_is_small(query_degree: float, noise_std: float) -> None:
    degrees = noisy_degrees(query_degree, noise_std=noise_std)
    ratio = degree_ratio(degrees, LABELLED, QUERY, noise_std=noise_std)
    assert ratio == pytest.approx(query_degree / 10, abs=0.01 + noise_std / 100)


@pytest.mark.parametrize(("query_degree", "noise_std"), [(10, 0), (8, 0), (30, 0), (10, 20)])
def test_degree_ratio_is_1_where_degrees_are_similar(query_degree: float, noise_std: float) -> None:
    degrees = noisy_degrees(query_degree, noise_std=noise_std)
    assert degree_ratio(degrees, LABELLED, QUERY, noise_std=noise_std) == 1


def test_degree_ratio_is_rarely_below_1_by_noise_alone() -> None:
    draws = [noisy_degrees(10, noise_std=2000.0, seed=seed) for seed in range(200)]
    is_small = [degree_ratio(each, LABELLED, QUERY, noise_std=2000.0) < 1 for each in draws]
    assert sum(is_small) <= 12


def test_degree_ratio_is_1_without_nodes_or_degrees_to_compare() -> None:
    degrees, no_nodes = noisy_degrees(0, noise_std=0), LABELLED[:0]
    assert degree_ratio(degrees, no_nodes, QUERY, noise_std=0) == 1
    assert degree_ratio(degrees, LABELLED, no_nodes, noise_std=0) == 1
    assert degree_ratio(-degrees, LABELLED, QUERY, noise_std=0) == 1


def test_a_matched_sum_is_smaller_and_equally_noisy() -> None:
    released = 40 + 3 * torch.randn((NODES, 2), generator=torch.Generator().manual_seed(5))
    matching = DegreeMatching(NODES)
    matching.start(0.25, QUERY)
    matching.add_release(released, noise_std=3.0)
    nodes = np.array([4000, 1, 0, 3000])
    rows = matching.rows(0, released, nodes)
    assert torch.equal(rows[[0, 3]], released[[4000, 3000]])  # query nodes are not scaled
    others = matching.rows(0, released, np.arange(3000))
    assert torch.equal(rows[[1, 2]], others[[1, 0]])  # the same each time
    assert others.mean().item() == pytest.approx(10, abs=0.2)
    assert others.std().item() == pytest.approx(3, abs=0.1)


def test_two_hops_have_independent_noise() -> None:
    matching = DegreeMatching(NODES)
    matching.start(0.5, QUERY)
    zero = torch.zeros(NODES, 1)
    for _ in range(2):
        matching.add_release(zero, noise_std=1.0)
    first, second = (matching.rows(hop, zero, LABELLED)[:, 0] for hop in range(2))
    assert abs(torch.corrcoef(torch.stack([first, second]))[0, 1].item()) < 0.1


def test_releases_are_unchanged_where_the_ratio_is_1() -> None:
    released = torch.randn(NODES, 2, generator=torch.Generator().manual_seed(1))
    matching = DegreeMatching(NODES)
    matching.start(1.0, QUERY)
    matching.add_release(released, noise_std=1.0)
    assert torch.equal(matching.rows(0, released, np.arange(NODES)), released)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_query_nodes_without_edges_are_predicted_as_well_as_by_an_mlp(epsilon: float) -> None:
    rng, nodes, train = np.random.default_rng(2), 2400, 1200
    labels = rng.integers(0, 3, nodes)
    src = rng.integers(0, train, 12 * train)
    dst = rng.integers(0, train, 12 * train)
    is_edge = (labels[src] == labels[dst]) | (rng.random(len(src)) < 0.1)
    features = rng.normal(size=(nodes, 6)) + 1.2 * np.eye(6)[labels]
    query_nodes = np.arange(train, nodes)
    scores = {}
    for method in ("mlp", "certified"):
        model = Vesper(
            epsilon=epsilon,
            method=method,
            seed=0,
            simulate_noise=True,
            settings={"epochs": 12, "width": 32},
        )
        model.fit(np.stack([src, dst])[:, is_edge], features, labels, train=np.arange(train))
        scores[method] = model.score(query_nodes, labels[query_nodes])
    assert scores["mlp"] > 50
    assert scores["certified"] > scores["mlp"] - 2  # near chance without degree matching
