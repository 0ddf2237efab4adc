"""Who will be asked about may have fewer neighbours: then heads learn from thinner sums."""

import numpy as np
import pytest
import torch

from vesper import Vesper
from vesper.method.certified.query_nodes import DegreeMatching, degree_ratio

NODES, SPEAKERS, ASKED = 6000, np.arange(2000), np.arange(3000, 6000)


def degrees(theirs: float, *, noise_std: float, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    mean = np.full(NODES, 10.0)
    mean[ASKED] = theirs
    return torch.from_numpy(rng.poisson(mean) + rng.normal(0, noise_std, NODES))


@pytest.mark.parametrize("noise_std", [0.0, 3.0, 20.0])
@pytest.mark.parametrize("theirs", [0.0, 2.0, 5.0])
def test_a_small_ratio_is_found(theirs: float, noise_std: float) -> None:
    heard = degrees(theirs, noise_std=noise_std)
    ratio = degree_ratio(heard, SPEAKERS, ASKED, noise_std=noise_std)
    assert ratio == pytest.approx(theirs / 10, abs=0.01 + noise_std / 100)


@pytest.mark.parametrize(("theirs", "noise_std"), [(10, 0), (8, 0), (30, 0), (10, 20)])
def test_degrees_that_are_alike_change_nothing(theirs: float, noise_std: float) -> None:
    heard = degrees(theirs, noise_std=noise_std)
    assert degree_ratio(heard, SPEAKERS, ASKED, noise_std=noise_std) == 1


def test_noise_alone_is_hardly_ever_taken_for_fewer_neighbours() -> None:
    drawn = [degrees(10, noise_std=2000.0, seed=seed) for seed in range(200)]
    found = [degree_ratio(heard, SPEAKERS, ASKED, noise_std=2000.0) < 1 for heard in drawn]
    assert sum(found) <= 12


def test_nobody_to_compare_changes_nothing() -> None:
    heard, nobody = degrees(0, noise_std=0), SPEAKERS[:0]
    assert degree_ratio(heard, nobody, ASKED, noise_std=0) == 1
    assert degree_ratio(heard, SPEAKERS, nobody, noise_std=0) == 1
    assert degree_ratio(-heard, SPEAKERS, ASKED, noise_std=0) == 1


def test_a_thinned_sum_is_smaller_and_as_noisy() -> None:
    released = 40 + 3 * torch.randn((NODES, 2), generator=torch.Generator().manual_seed(5))
    thinned = DegreeMatching(NODES)
    thinned.start(0.25, ASKED)
    thinned.add_release(released, noise_std=3.0)
    nodes = np.array([4000, 1, 0, 3000])
    rows = thinned.rows(0, released, nodes)
    assert torch.equal(rows[[0, 3]], released[[4000, 3000]])  # those who will be asked about
    others = thinned.rows(0, released, np.arange(3000))
    assert torch.equal(rows[[1, 2]], others[[1, 0]])  # the same each time
    assert others.mean().item() == pytest.approx(10, abs=0.2)
    assert others.std().item() == pytest.approx(3, abs=0.1)


def test_noise_of_two_hops_is_not_the_same() -> None:
    thinned = DegreeMatching(NODES)
    thinned.start(0.5, ASKED)
    zero = torch.zeros(NODES, 1)
    for _ in range(2):
        thinned.add_release(zero, noise_std=1.0)
    first, second = (thinned.rows(hop, zero, SPEAKERS)[:, 0] for hop in range(2))
    assert abs(torch.corrcoef(torch.stack([first, second]))[0, 1].item()) < 0.1


def test_releases_are_handed_on_as_they_are_where_nothing_is_thinned() -> None:
    released = torch.randn(NODES, 2, generator=torch.Generator().manual_seed(1))
    thinned = DegreeMatching(NODES)
    thinned.start(1.0, ASKED)
    thinned.add_release(released, noise_std=1.0)
    assert torch.equal(thinned.rows(0, released, np.arange(NODES)), released)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_nodes_without_an_edge_do_not_suffer_from_those_that_have_many(epsilon: float) -> None:
    rng, nodes, train = np.random.default_rng(2), 2400, 1200
    labels = rng.integers(0, 3, nodes)
    src = rng.integers(0, train, 12 * train)
    dst = rng.integers(0, train, 12 * train)
    kept = (labels[src] == labels[dst]) | (rng.random(len(src)) < 0.1)
    features = rng.normal(size=(nodes, 6)) + 1.2 * np.eye(6)[labels]
    query_nodes = np.arange(train, nodes)
    scores = {}
    for method in ("mlp", "certified"):
        model = Vesper(epsilon=epsilon, method=method, seed=0, settings={"epochs": 12, "width": 32})
        model.fit(np.stack([src, dst])[:, kept], features, labels, train=np.arange(train))
        scores[method] = model.score(query_nodes, labels[query_nodes])
    assert scores["mlp"] > 50
    assert scores["certified"] > scores["mlp"] - 2  # without thinning it is near chance
