"""The matching gives simple graphs with exactly the required degrees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.datasets.block_model.stub_matching import match


def degrees_of(keys: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    src, dst = np.divmod(keys, num_nodes)
    return np.bincount(src, minlength=num_nodes) + np.bincount(dst, minlength=num_nodes)


def stubs_of(degrees: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)


@given(
    seed=st.integers(0, 2**32),
    num_nodes=st.integers(40, 200),
    num_pools=st.integers(0, 4),
    mean=st.integers(1, 8),
)
def test_simple_graph_with_exact_degrees(
    seed: int, num_nodes: int, num_pools: int, mean: int
) -> None:
    rng = np.random.default_rng(seed)
    per_pool = rng.poisson(mean / (num_pools + 1), (num_pools + 1, num_nodes))
    per_pool[-1, 0] += per_pool.sum() % 2  # an even number of stubs
    pools = [stubs_of(degrees) for degrees in per_pool]
    keys = match(iter(pools[:-1]), pools[-1], num_nodes=num_nodes, rng=rng)
    src, dst = np.divmod(keys, num_nodes)
    assert (src < dst).all()
    assert (np.diff(keys) > 0).all()
    assert (degrees_of(keys, num_nodes) == per_pool.sum(axis=0)).all()


def test_hubs_with_many_repeated_pairs_keep_their_degree() -> None:
    degrees = np.full(1_000, 4)
    degrees[:30] = 110  # hubs hold almost half of the stubs: many of their pairs repeat
    keys = match(iter([]), stubs_of(degrees), num_nodes=1_000, rng=np.random.default_rng(0))
    assert (np.diff(keys) > 0).all()
    assert (degrees_of(keys, 1_000) == degrees).all()


def test_stubs_of_a_pool_are_paired_inside_it() -> None:
    low, high = np.arange(0, 500), np.arange(500, 1_000)
    pools = [np.repeat(nodes.astype(np.int32), 6) for nodes in (low, high)]
    no_stubs = np.empty(0, np.int32)
    keys = match(iter(pools), no_stubs, num_nodes=1_000, rng=np.random.default_rng(0))
    src, dst = np.divmod(keys, 1_000)
    assert ((src < 500) == (dst < 500)).mean() > 0.99  # the last swaps may cross


def test_pairing_is_uniform() -> None:
    """Six stubs of six nodes have fifteen pairings; each must come up equally often."""
    rng = np.random.default_rng(0)
    frequency: dict[bytes, int] = {}
    for _ in range(3_000):
        keys = match(iter([]), np.arange(6, dtype=np.int32), num_nodes=6, rng=rng)
        frequency[keys.tobytes()] = frequency.get(keys.tobytes(), 0) + 1
    counts = np.array(list(frequency.values()))
    assert len(counts) == 15
    chi_square = ((counts - 200) ** 2 / 200).sum()
    assert chi_square < 36.1  # 0.999 quantile for 14 degrees of freedom


def test_the_same_generator_gives_the_same_graph() -> None:
    def run(seed: int) -> NDArray[np.int64]:
        rng = np.random.default_rng(seed)
        return match(iter([]), stubs_of(np.full(200, 6)), num_nodes=200, rng=rng)

    assert (run(0) == run(0)).all()
    assert (run(0) != run(1)).any()


@pytest.mark.parametrize("degrees", [[2, 0, 0], [3, 3, 1, 1], [4, 2, 1, 1]])
def test_impossible_degrees_are_refused(degrees: list[int]) -> None:
    with pytest.raises(ValueError, match="no simple graph"):
        match(
            iter([]),
            stubs_of(np.array(degrees)),
            num_nodes=len(degrees),
            rng=np.random.default_rng(0),
        )


def test_progress_counts_edges() -> None:
    reports: list[tuple[str, int, int]] = []
    pool = np.repeat(np.arange(50, dtype=np.int32), 2)
    match(
        iter([pool]),
        pool.copy(),
        num_nodes=50,
        rng=np.random.default_rng(0),
        progress=lambda task, done, total, note="": reports.append((task, done, total)),
    )
    assert {task for task, _, _ in reports} == {"edges"}
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)
