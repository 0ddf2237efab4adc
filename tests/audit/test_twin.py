"""Two worlds at once: the real one is unaffected, and the likelihood ratio is exact."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.audit.canaries import Canaries
from vesper.audit.small_graphs import canaries_for, settings_for
from vesper.audit.trial import are_independent, kind_of, observe
from vesper.audit.twin import TwinMethod
from vesper.mechanism.door import OpenDoor
from vesper.method.registry import find_method
from vesper.method.settings import Config
from vesper.session.config import load_config
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train

PAPER = "paper-gin"
WEIGHTS = load_config(
    None, {**settings_for("weights", find_method(PAPER)), "method": PAPER, "epsilon": 1.0}
)


def canaries_of(config: Config) -> Canaries:
    return canaries_for("weights", config, count=1)


def test_two_worlds_with_equal_graphs_have_no_distance() -> None:
    canaries = canaries_of(WEIGHTS)
    run_spec = run_spec_for(WEIGHTS, canaries.data, canaries.labels)
    graph = canaries.data.graph
    twin = TwinMethod(run_spec.method, other=graph, noise_seed=1)
    train(replace(run_spec, method=twin), canaries.data, canaries.labels, OpenDoor(graph))
    assert twin.twin.mu_squared.max() == 0
    assert twin.twin.log_ratios.tolist() == [0.0] * graph.num_nodes


def test_the_real_world_is_unaffected_by_the_other() -> None:
    canaries = canaries_of(WEIGHTS)
    run_spec = run_spec_for(WEIGHTS, canaries.data, canaries.labels)

    def weights(method: TwinMethod) -> dict[str, NDArray[np.float32]]:
        each = replace(run_spec, method=method)
        trained = train(each, canaries.data, canaries.labels, OpenDoor(canaries.data.graph))
        state = trained.data_side.module.state_dict()
        return {name: value.numpy() for name, value in state.items()}

    with_edge = canaries.holdings(np.array([True])).graph
    different = TwinMethod(run_spec.method, other=with_edge, noise_seed=5)
    equal = TwinMethod(run_spec.method, other=canaries.data.graph, noise_seed=5)
    one = weights(different)
    two = weights(equal)
    real = [name for name in one if name.startswith("0.")]
    other = [name for name in one if name.startswith("1.")]
    assert real
    assert all(np.array_equal(one[name], two[name]) for name in real)
    assert any(not np.array_equal(one[name], two[name]) for name in other)


def test_the_log_ratio_has_the_mean_that_its_distance_implies() -> None:
    """Under p, log p / q has the mean mu^2 / 2; checked in both worlds."""
    canaries = canaries_of(WEIGHTS)
    for is_present in (True, False):
        gaps, variance = [], 0.0
        for seed in range(6):
            coins = np.array([is_present])
            outcome = observe(canaries, WEIGHTS, coins, kind="two worlds", noise_seed=seed)
            assert outcome.scores is not None
            assert outcome.mu_squared is not None
            sign = 1 if is_present else -1
            gaps.append(sign * float(outcome.scores[0]) - float(outcome.mu_squared[0]) / 2)
            variance += float(outcome.mu_squared[0])
        assert abs(sum(gaps)) < 4 * math.sqrt(variance)
        assert variance / 6 > 0.5  # the two worlds differ


def test_distances_of_rows_of_both_ends_are_as_in_the_errata() -> None:
    """Width 1, E epochs: each end reveals E unit messages, mu = sqrt(2 E) / noise_std exactly."""
    settings = settings_for("rows", find_method(PAPER))
    config = load_config(
        None, {**settings, "method": PAPER, "epsilon": 1.0, "batch_size": 20, "seed": 1}
    )
    canaries = canaries_for("rows", config, count=20)
    assert kind_of(canaries, config) == "two worlds"
    assert are_independent(canaries, config, "two worlds")
    coins = np.arange(20) % 2 == 0
    outcome = observe(canaries, config, coins, kind="two worlds", noise_seed=9)
    run_spec = run_spec_for(config, canaries.data, canaries.labels)
    noise_std = run_spec.method.noise_plan(config, run_spec.sizes).noise_stds[0]
    assert outcome.mu_squared is not None
    assert np.sqrt(outcome.mu_squared).tolist() == pytest.approx(
        [math.sqrt(2 * config.run.epochs) / noise_std] * 20
    )


def test_weights_that_learn_from_edges_make_canaries_dependent() -> None:
    settings = settings_for("rows", find_method(PAPER))
    config = load_config(
        None,
        {**settings, "method": PAPER, "batch_size": 20, "width": 8, "learning_rate": 0.05},
    )
    canaries = canaries_for("rows", config, count=3)
    assert not are_independent(canaries, config, "two worlds")


@pytest.mark.parametrize("settings", [{"hops": 2}, {"dropout": 0.1}, {"max_degree": 4}])
def test_the_exact_ratio_is_not_used_when_something_else_is_hidden(
    settings: dict[str, object],
) -> None:
    small = settings_for("rows", find_method(PAPER))
    config = load_config(None, {**small, "method": PAPER, "batch_size": 50, **settings})
    assert kind_of(canaries_for("rows", config, count=2), config) == "learned"
