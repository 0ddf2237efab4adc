import numpy as np
import pytest

from vesper.datasets.finance.patterns import (
    CHAIN_SHARE,
    RING_SHARE,
    RING_SIZES,
    SHARED_SHARE,
    Patterns,
    plant_patterns,
)


def plant(num_risky: int, seed: int = 0) -> Patterns:
    return plant_patterns(num_risky, np.random.default_rng(seed))


def components(patterns: Patterns) -> list[set[int]]:
    """Connected components of the members, by slow and simple merging."""
    group = {user: {user} for user in range(patterns.num_members)}
    for a, b in patterns.pairs.tolist():
        if group[a] is not group[b]:
            group[a] |= group[b]
            for user in group[b]:
                group[user] = group[a]
    return list({id(members): members for members in group.values()}.values())


@pytest.mark.parametrize("num_risky", [0, 2, 3, 10, 100, 5000])
def test_pairs_are_distinct_and_among_members(num_risky: int) -> None:
    patterns = plant(num_risky)
    assert patterns.num_members <= num_risky
    assert (patterns.pairs[:, 0] != patterns.pairs[:, 1]).all()
    if len(patterns.pairs):
        assert patterns.pairs.min() >= 0
        assert patterns.pairs.max() < patterns.num_members
    assert len({frozenset(pair) for pair in patterns.pairs.tolist()}) == len(patterns.pairs)


def test_shares() -> None:
    assert plant(10_000).num_members == round(10_000 * (RING_SHARE + CHAIN_SHARE + SHARED_SHARE))


def test_a_ring_is_an_organiser_linked_to_all_and_a_circle() -> None:
    patterns = plant(10_000)
    rings = int(10_000 * RING_SHARE)
    organisers = patterns.organisers[patterns.organisers < rings]
    degree = np.bincount(patterns.pairs.ravel(), minlength=patterns.num_members)
    sizes = np.diff(np.append(organisers, rings))
    whole = sizes >= RING_SIZES[0]  # the last may be cut short
    assert whole[:-1].all()
    assert (degree[organisers] == sizes - 1)[whole].all()
    members = np.setdiff1d(np.arange(organisers[-1]), organisers)
    assert set(degree[members].tolist()) == {5, 7}  # the organiser, and 2 or 3 on each side


def test_a_chain_is_a_path() -> None:
    patterns = plant(10_000)
    rings, chains = int(10_000 * RING_SHARE), int(10_000 * CHAIN_SHARE)
    degree = np.bincount(patterns.pairs.ravel(), minlength=patterns.num_members)
    assert set(degree[rings : rings + chains].tolist()) <= {0, 1, 2}
    assert (degree[rings : rings + chains] == 2).mean() > 0.5
    inside = [c for c in components(patterns) if min(c) >= rings and max(c) < rings + chains]
    linked = [pair for pair in patterns.pairs.tolist() if rings <= pair[0] < rings + chains]
    assert len(linked) == sum(len(c) - 1 for c in inside)  # trees


def test_collectors_are_linked_to_every_user_of_their_group() -> None:
    patterns = plant(10_000)
    first = int(10_000 * RING_SHARE) + int(10_000 * CHAIN_SHARE)
    collectors = set(patterns.organisers[patterns.organisers >= first].tolist())
    linked = {tuple(pair) for pair in patterns.pairs.tolist()}
    groups = [c for c in components(patterns) if min(c) >= first and len(c) > 1]
    assert len(groups) > 50
    for group in groups:
        centre = group & collectors
        assert 1 <= len(centre) <= 3
        for user in group - centre:
            assert all((collector, user) in linked for collector in centre)


def test_seeds() -> None:
    assert np.array_equal(plant(500, 1).pairs, plant(500, 1).pairs)
    assert not np.array_equal(plant(500, 1).pairs, plant(500, 2).pairs)
