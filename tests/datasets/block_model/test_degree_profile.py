"""Degrees follow the histogram, sum to twice the edges, and shrink with the size as documented."""

import numpy as np
import pytest

from vesper.datasets.block_model.degree_profile import DegreeProfile

PROFILE = DegreeProfile(
    histogram=(10, 20, 30, 20, 20),  # degree 0, 1, 2, 3 and >= 4
    mean_degree=4.0,
    max_degree=200,
    tail_log_std=1.5,
)


def test_every_closed_bin_matches_to_within_one_node() -> None:
    degrees = PROFILE.draw(10_000, np.random.default_rng(0))
    counts = np.bincount(degrees)
    assert np.abs(counts[:4] - [1_000, 2_000, 3_000, 2_000]).max() <= 1
    assert abs(int((degrees >= 4).sum()) - 2_000) <= 1


def test_the_open_bin_gives_the_mean_and_respects_the_maximum() -> None:
    degrees = PROFILE.draw(10_000, np.random.default_rng(0))
    assert degrees.sum() == 2 * PROFILE.num_edges(10_000) == 40_000
    assert 100 < degrees.max() <= 200


def test_the_open_bin_falls_smoothly() -> None:
    degrees = PROFILE.draw(100_000, np.random.default_rng(0))
    tail = np.bincount(degrees)[4:40].astype(float)
    assert (tail[1:] <= 1.05 * tail[:-1]).all()


@pytest.mark.parametrize("num_nodes", [100, 101, 250, 400, 1_000, 3_000])
def test_small_graphs_stay_sparse_and_exact(num_nodes: int) -> None:
    degrees = PROFILE.draw(num_nodes, np.random.default_rng(1))
    assert len(degrees) == num_nodes
    assert degrees.sum() == 2 * PROFILE.num_edges(num_nodes)
    assert degrees.min() >= 0
    assert degrees.max() <= num_nodes // 10
    assert degrees.mean() <= 0.01 * num_nodes + 0.01


def test_the_open_bin_shrinks_before_the_closed_ones() -> None:
    wide = DegreeProfile(
        histogram=PROFILE.histogram, mean_degree=20.0, max_degree=400, tail_log_std=1.5
    )
    degrees = wide.draw(1_000, np.random.default_rng(0))  # mean 10 instead of 20
    assert degrees.mean() == 10.0
    assert np.bincount(degrees)[:4].tolist() == [100, 200, 300, 200]


def test_the_order_of_degrees_depends_on_the_generator_alone() -> None:
    first = PROFILE.draw(1_000, np.random.default_rng(3))
    again = PROFILE.draw(1_000, np.random.default_rng(3))
    other = PROFILE.draw(1_000, np.random.default_rng(4))
    assert (first == again).all()
    assert (first != other).any()
    assert (np.sort(first) == np.sort(other)).mean() > 0.99
