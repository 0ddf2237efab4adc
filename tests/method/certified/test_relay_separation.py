"""Labelled nodes are separated if connected through other nodes only, not if edges are random."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.certified.relay import are_separated

NODES, LENGTHS = 900, (0.3, 0.4)


def separated_share(
    edges: NDArray[np.int64], is_labelled: NDArray[np.bool_], *, noise_std: float
) -> float:
    """Share of fifty draws of noise in which labelled nodes count as separated."""
    messages = np.column_stack([LENGTHS[0] * is_labelled, np.full(NODES, LENGTHS[1])])
    graph = Graph.from_edges(NODES, edges)
    sums = OpenDoor(graph).release(messages.astype(np.float32), noise_std=0.0)
    rng, labelled_nodes, num_separated = np.random.default_rng(1), np.flatnonzero(is_labelled), 0
    for _ in range(50):
        released = (sums + rng.normal(0, noise_std, sums.shape)).astype(np.float32)
        num_separated += are_separated(
            released, labelled_nodes, lengths=LENGTHS, noise_std=noise_std
        )
    return num_separated / 50


def random_edges(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    ends = rng.choice(NODES, (3 * NODES, 2), p=weights / weights.sum())
    return np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)


@pytest.mark.parametrize("noise_std", [0.0, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("relative_degree", [0.2, 1.0, 5.0])
def test_randomly_connected_nodes_are_not_separated(
    noise_std: float, relative_degree: float
) -> None:
    """Also where labelled nodes have five times as many neighbours as others, or a fifth."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        is_labelled = rng.random(NODES) < 0.4
        edges = random_edges(rng, np.where(is_labelled, relative_degree, 1.0))
        assert separated_share(edges, is_labelled, noise_std=noise_std) <= 0.06


@pytest.mark.parametrize("num_labelled", [12, 40])
def test_a_few_labelled_nodes_are_rarely_separated_by_chance(num_labelled: int) -> None:
    """Labels are drawn at random too: even without noise, no two of a few nodes may be adjacent."""
    rng, share = np.random.default_rng(0), 0.0
    for _ in range(40):
        is_labelled = np.zeros(NODES, dtype=bool)
        is_labelled[rng.choice(NODES, num_labelled, replace=False)] = True
        edges = random_edges(rng, np.ones(NODES))
        share += separated_share(edges, is_labelled, noise_std=0.0) / 40
    assert share <= 0.1


@pytest.mark.parametrize(("noise_std", "least"), [(0.0, 1.0), (1.0, 1.0), (4.0, 0.7), (40.0, 0.0)])
def test_users_connected_through_shops_only_are_separated_where_noise_allows(
    noise_std: float, least: float
) -> None:
    rng, users = np.random.default_rng(0), 800
    edges = np.column_stack([np.repeat(np.arange(users), 6), rng.integers(users, NODES, 6 * users)])
    is_labelled = (np.arange(NODES) < users) & (rng.random(NODES) < 0.6)
    share = separated_share(np.unique(edges, axis=0), is_labelled, noise_std=noise_std)
    assert share >= least
    assert share <= 0.06 or noise_std < 40
