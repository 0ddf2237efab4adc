"""Speakers at random are not kept apart, whatever their degrees; those with shops between are."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.certified.relay import are_separated

NODES, LENGTHS = 900, (0.3, 0.4)


def share_apart(edges: NDArray[np.int64], speaks: NDArray[np.bool_], *, noise_std: float) -> float:
    """In how many of fifty draws of noise they are taken for kept apart."""
    said = np.column_stack([LENGTHS[0] * speaks, np.full(NODES, LENGTHS[1])]).astype(np.float32)
    sums = OpenDoor(Graph.from_edges(NODES, edges)).release(said, noise_std=0.0)
    rng, labelled_nodes, found = np.random.default_rng(1), np.flatnonzero(speaks), 0
    for _ in range(50):
        released = (sums + rng.normal(0, noise_std, sums.shape)).astype(np.float32)
        found += are_separated(released, labelled_nodes, lengths=LENGTHS, noise_std=noise_std)
    return found / 50


def at_random(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    ends = rng.choice(NODES, (3 * NODES, 2), p=weights / weights.sum())
    return np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)


@pytest.mark.parametrize("noise_std", [0.0, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("times", [0.2, 1.0, 5.0])
def test_speakers_at_random_are_not(noise_std: float, times: float) -> None:
    """Also where speakers have five times as many neighbours as others, or a fifth of them."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        speaks = rng.random(NODES) < 0.4
        edges = at_random(rng, np.where(speaks, times, 1.0))
        assert share_apart(edges, speaks, noise_std=noise_std) <= 0.06


@pytest.mark.parametrize("num_speakers", [12, 40])
def test_a_handful_of_speakers_is_not_by_chance(num_speakers: int) -> None:
    """Who happens to be labelled is chance too: without noise few speakers may hear none."""
    rng, found = np.random.default_rng(0), 0.0
    for _ in range(40):
        speaks = np.zeros(NODES, dtype=bool)
        speaks[rng.choice(NODES, num_speakers, replace=False)] = True
        found += share_apart(at_random(rng, np.ones(NODES)), speaks, noise_std=0.0) / 40
    assert found <= 0.1


@pytest.mark.parametrize(("noise_std", "least"), [(0.0, 1.0), (1.0, 1.0), (4.0, 0.7), (40.0, 0.0)])
def test_those_with_shops_between_them_are_where_noise_allows(
    noise_std: float, least: float
) -> None:
    rng, users = np.random.default_rng(0), 800
    edges = np.column_stack([np.repeat(np.arange(users), 6), rng.integers(users, NODES, 6 * users)])
    speaks = (np.arange(NODES) < users) & (rng.random(NODES) < 0.6)
    found = share_apart(np.unique(edges, axis=0), speaks, noise_std=noise_std)
    assert found >= least
    assert found <= 0.06 or noise_std < 40
