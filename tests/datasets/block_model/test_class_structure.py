"""Classes have their shares, stray stubs leave their class, and every stub lands in one pool."""

import numpy as np
import pytest

from vesper.datasets.block_model.class_structure import (
    Mixing,
    class_pools,
    draw_labels,
    draw_strays,
    quotas,
    skewed_shares,
    split_stubs,
)

MIXING = Mixing(home_alpha=2.0, home_beta=1.0, clear_degree=1e9, stray_share=0.75, kinship=5.0)


def test_shares_sum_to_one_and_the_largest_is_as_specified() -> None:
    shares = skewed_shares(47, largest=0.27, ratio=0.9)
    assert len(shares) == 47
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == 0.27 == max(shares)
    assert min(shares) > 0


@pytest.mark.parametrize("total", [5, 6, 99, 10_000])
def test_quotas_sum_to_the_total_and_are_at_least_one(total: int) -> None:
    shares = np.array([0.6, 0.25, 0.1, 0.05, 0.0])
    counts = quotas(shares, total)
    assert counts.sum() == total
    assert counts.min() >= 1
    assert np.abs(counts - shares * total).max() <= len(shares)


def test_labels_come_in_random_order() -> None:
    labels = draw_labels((0.5, 0.3, 0.2), 10_000, np.random.default_rng(0))
    assert np.abs(np.bincount(labels) - [5_000, 3_000, 2_000]).max() <= 2
    halves = np.bincount(labels[:5_000]), np.bincount(labels[5_000:])
    assert np.abs(halves[0] - halves[1]).max() < 250


def test_strays_leave_home_and_prefer_their_family() -> None:
    rng = np.random.default_rng(0)
    labels = draw_labels((0.25, 0.25, 0.25, 0.25), 40_000, rng)
    strays = draw_strays(labels, np.array([0, 1, 0, 1]), MIXING.kinship, rng)
    assert (strays != labels).all()
    to_family = np.bincount(strays[labels == 0], minlength=4) / (labels == 0).sum()
    assert to_family == pytest.approx([0, 1 / 7, 5 / 7, 1 / 7], abs=0.02)


def test_stubs_split_as_a_multinomial() -> None:
    degrees = np.full(50_000, 20)
    home, stray, anywhere = split_stubs(degrees, MIXING, np.random.default_rng(0))
    assert (home + stray + anywhere == degrees).all()
    assert home.mean() == pytest.approx(20 * 2 / 3, rel=0.02)
    assert stray.mean() == pytest.approx(20 / 3 * 0.75, rel=0.02)
    binomial_std = np.sqrt(20 * 2 / 3 * 1 / 3)
    assert home.std() > 2 * binomial_std  # nodes differ: more than with one share for all


def test_nodes_of_high_degree_stray_less() -> None:
    mixing = Mixing(home_alpha=1.0, home_beta=1.0, clear_degree=20.0, stray_share=0.5, kinship=1.0)
    degrees = np.repeat([20, 180], 20_000)
    home, _, _ = split_stubs(degrees, mixing, np.random.default_rng(0))
    away = 1 - home / degrees
    assert away[degrees == 20].mean() == pytest.approx(0.5 / 2, rel=0.05)
    assert away[degrees == 180].mean() == pytest.approx(0.5 / 10, rel=0.05)


def test_every_home_and_stray_stub_is_in_the_pool_of_its_class() -> None:
    labels = np.array([0, 1, 0, 2], np.int32)
    strays = np.array([1, 2, 2, 0], np.int32)
    home, stray = np.array([2, 1, 0, 3]), np.array([1, 0, 2, 1])
    pools = [sorted(pool.tolist()) for pool in class_pools(labels, strays, home, stray, 3)]
    assert pools == [[0, 0, 3], [0, 1], [2, 2, 3, 3, 3]]
