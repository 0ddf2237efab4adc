import subprocess
import sys
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from vesper.errors import InputError
from vesper.graph.schedule import IndependentDraws, Schedule, ShuffledEpochs

node_sets = st.lists(st.integers(0, 10**12), min_size=1, max_size=30, unique=True).map(
    lambda nodes: np.array(nodes, dtype=np.int64)
)


def participation_by_counting(schedule: Schedule, nodes: NDArray[np.int64]) -> list[int]:
    counts = Counter(node for roots in schedule for node in roots.tolist())
    assert set(counts) <= set(nodes.tolist())
    return [counts[node] for node in nodes.tolist()]


def schedules(nodes: NDArray[np.int64], batch_size: int, seed: int) -> list[Schedule]:
    return [
        ShuffledEpochs(nodes, batch_size=batch_size, num_epochs=3, seed=seed),
        IndependentDraws(nodes, batch_size=min(batch_size, len(nodes)), num_steps=7, seed=seed),
    ]


@given(node_sets, st.integers(1, 40), st.integers(0, 2**70))
def test_contract(nodes: NDArray[np.int64], batch_size: int, seed: int) -> None:
    for schedule in schedules(nodes, batch_size, seed):
        batches = list(schedule)
        assert len(batches) == len(schedule)
        for step in reversed(range(len(schedule))):  # out of order, across epochs
            np.testing.assert_array_equal(schedule.batch(step), batches[step])
        for roots in batches:
            assert roots.dtype == np.int64
            assert len(set(roots.tolist())) == len(roots) > 0
        assert schedule.participation().tolist() == participation_by_counting(schedule, nodes)
        for step in (-1, len(schedule)):
            with pytest.raises(InputError, match=r"^step: expected"):
                schedule.batch(step)


@given(node_sets, st.integers(1, 40))
def test_an_epoch_holds_every_node_once(nodes: NDArray[np.int64], batch_size: int) -> None:
    schedule = ShuffledEpochs(nodes, batch_size=batch_size, num_epochs=2, seed=0)
    batches = list(schedule)
    per_epoch = schedule.batches_an_epoch
    for epoch in (batches[:per_epoch], batches[per_epoch:]):
        assert sorted(np.concatenate(epoch).tolist()) == sorted(nodes.tolist())
        assert all(len(roots) == batch_size for roots in epoch[:-1])


def test_each_seed_epoch_and_step_has_its_own_order() -> None:
    nodes = np.arange(100)
    for schedule in schedules(nodes, 100, seed=0)[:1]:
        assert not np.array_equal(schedule.batch(0), schedule.batch(1))
    draws = IndependentDraws(nodes, batch_size=20, num_steps=2, seed=0)
    assert set(draws.batch(0).tolist()) != set(draws.batch(1).tolist())
    for one, other in zip(schedules(nodes, 20, seed=0), schedules(nodes, 20, seed=1), strict=True):
        assert not np.array_equal(one.batch(0), other.batch(0))
    for one, other in zip(schedules(nodes, 20, seed=5), schedules(nodes, 20, seed=5), strict=True):
        np.testing.assert_array_equal(one.batch(0), other.batch(0))


def is_uniform_over_pairs(draws: list[NDArray[np.int64]]) -> bool:
    counts = Counter(tuple(sorted(roots.tolist())) for roots in draws)
    pairs = list(combinations(range(5), 2))
    expected = len(draws) / len(pairs)
    statistic = sum((counts[pair] - expected) ** 2 / expected for pair in pairs)
    return bool(chi2.sf(statistic, len(pairs)) > 1e-4)


def test_first_batches_are_uniform_subsets_and_a_draw_with_replacement_is_not() -> None:
    nodes = np.arange(5)
    draws = IndependentDraws(nodes, batch_size=2, num_steps=3000, seed=0)
    epochs = ShuffledEpochs(nodes, batch_size=2, num_epochs=3000, seed=0)
    generator = np.random.default_rng(0)
    assert is_uniform_over_pairs(list(draws))
    assert is_uniform_over_pairs([epochs.batch(3 * epoch) for epoch in range(3000)])
    assert not is_uniform_over_pairs([generator.integers(0, 5, 2) for _ in range(3000)])


def test_participation_of_independent_draws_varies() -> None:
    times = IndependentDraws(np.arange(50), batch_size=5, num_steps=100, seed=0).participation()
    assert times.sum() == 500
    assert times.min() < 10 < times.max()


def test_schedules_are_frozen_and_copy_their_nodes() -> None:
    nodes = np.arange(10)
    for schedule in schedules(nodes, 3, seed=0):
        before = schedule.batch(0).tolist()
        nodes[:] = 0
        assert schedule.batch(0).tolist() == before
        nodes[:] = np.arange(10)
    schedule = ShuffledEpochs(nodes, batch_size=3, num_epochs=1, seed=0)
    for name in ("seed", "nodes"):
        with pytest.raises(FrozenInstanceError):
            setattr(schedule, name, 1)
    with pytest.raises(ValueError, match="read-only"):
        schedule.nodes[0] = 1
    assert len(replace(schedule, num_epochs=2)) == 2 * len(schedule)


def test_no_nodes_or_no_epochs_give_no_batches() -> None:
    nothing = np.array([], dtype=np.int64)
    assert list(ShuffledEpochs(nothing, batch_size=4, num_epochs=3, seed=0)) == []
    assert list(ShuffledEpochs(np.arange(4), batch_size=4, num_epochs=0, seed=0)) == []


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (np.array([1, 2, 1]), "got 1 repeated .first 1: 1."),
        (np.array([-4, 2]), "got 1 negative .first 1: -4."),
        (np.array([0.5]), "expected a one-dimensional integer array, got float64"),
        (np.array([[1]]), "expected a one-dimensional integer array, got int64 of shape"),
    ],
)
def test_wrong_nodes_are_named(nodes: NDArray[np.int64], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ShuffledEpochs(nodes, batch_size=1, num_epochs=1, seed=0)
    with pytest.raises(InputError, match=message):
        IndependentDraws(nodes, batch_size=1, num_steps=1, seed=0)


def test_wrong_settings_are_named() -> None:
    nodes = np.arange(4)
    with pytest.raises(InputError, match=r"^batch_size: expected at least 1, got 0"):
        ShuffledEpochs(nodes, batch_size=0, num_epochs=1, seed=0)
    with pytest.raises(InputError, match=r"^num_epochs: expected at least 0, got -1"):
        ShuffledEpochs(nodes, batch_size=1, num_epochs=-1, seed=0)
    with pytest.raises(InputError, match=r"^seed: expected at least 0, got -1"):
        ShuffledEpochs(nodes, batch_size=1, num_epochs=1, seed=-1)
    with pytest.raises(InputError, match=r"^num_steps: expected at least 0, got -1"):
        IndependentDraws(nodes, batch_size=1, num_steps=-1, seed=0)
    with pytest.raises(
        InputError, match=r"^batch_size: expected at most the number of nodes, 4, got 5"
    ):
        IndependentDraws(nodes, batch_size=5, num_steps=1, seed=0)


def test_a_schedule_needs_no_compiler() -> None:
    program = "import sys, vesper.graph.schedule; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
