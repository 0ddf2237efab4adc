"""Two worlds at once: the real one is undisturbed, and the ratio between them is exact."""

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


def test_the_same_graph_twice_is_no_distance_at_all() -> None:
    canaries = canaries_of(WEIGHTS)
    run_spec = run_spec_for(WEIGHTS, canaries.data, canaries.labels)
    graph = canaries.data.graph
    twin = TwinMethod(run_spec.method, other=graph, noise_seed=1)
    train(replace(run_spec, method=twin), canaries.data, canaries.labels, OpenDoor(graph))
    assert twin.twin.mu_squared.max() == 0
    assert twin.twin.log_ratios.tolist() == [0.0] * graph.num_nodes


def test_the_real_world_is_undisturbed_by_the_other() -> None:
    canaries = canaries_of(WEIGHTS)
    run_spec = run_spec_for(WEIGHTS, canaries.data, canaries.labels)

    def weights(method: TwinMethod) -> dict[str, NDArray[np.float32]]:
        each = replace(run_spec, method=method)
        trained = train(each, canaries.data, canaries.labels, OpenDoor(canaries.data.graph))
        state = trained.data_side.module.state_dict()
        return {name: value.numpy() for name, value in state.items()}

    with_edge = canaries.holdings(np.array([True])).graph
    apart = TwinMethod(run_spec.method, other=with_edge, noise_seed=5)
    alike = TwinMethod(run_spec.method, other=canaries.data.graph, noise_seed=5)
    one = weights(apart)
    two = weights(alike)
    real = [name for name in one if name.startswith("0.")]
    other = [name for name in one if name.startswith("1.")]
    assert real
    assert all(np.array_equal(one[name], two[name]) for name in real)
    assert any(not np.array_equal(one[name], two[name]) for name in other)


def test_the_ratio_has_the_mean_that_its_distance_says() -> None:
    """Of log p / q under p the mean is that of mu^2 / 2; checked in both worlds."""
    canaries = canaries_of(WEIGHTS)
    for there in (True, False):
        gaps, variance = [], 0.0
        for seed in range(6):
            coins = np.array([there])
            seen = observe(canaries, WEIGHTS, coins, kind="two worlds", noise_seed=seed)
            assert seen.scores is not None
            assert seen.mu_squared is not None
            sign = 1 if there else -1
            gaps.append(sign * float(seen.scores[0]) - float(seen.mu_squared[0]) / 2)
            variance += float(seen.mu_squared[0])
        assert abs(sum(gaps)) < 4 * math.sqrt(variance)
        assert variance / 6 > 0.5  # there is something to see


def test_rows_of_both_ends_are_what_the_errata_say() -> None:
    """Width 1, E epochs: each end shows E unit messages, mu = sqrt(2 E) / noise_std exactly."""
    settings = settings_for("rows", find_method(PAPER))
    config = load_config(
        None, {**settings, "method": PAPER, "epsilon": 1.0, "batch_size": 20, "seed": 1}
    )
    canaries = canaries_for("rows", config, count=20)
    assert kind_of(canaries, config) == "two worlds"
    assert are_independent(canaries, config, "two worlds")
    coins = np.arange(20) % 2 == 0
    seen = observe(canaries, config, coins, kind="two worlds", noise_seed=9)
    run_spec = run_spec_for(config, canaries.data, canaries.labels)
    noise_std = run_spec.method.noise_plan(config, run_spec.sizes).noise_stds[0]
    assert seen.mu_squared is not None
    assert np.sqrt(seen.mu_squared).tolist() == pytest.approx(
        [math.sqrt(2 * config.run.epochs) / noise_std] * 20
    )


def test_weights_that_learn_from_edges_join_canaries() -> None:
    settings = settings_for("rows", find_method(PAPER))
    config = load_config(
        None,
        {**settings, "method": PAPER, "batch_size": 20, "width": 8, "learning_rate": 0.05},
    )
    canaries = canaries_for("rows", config, count=3)
    assert not are_independent(canaries, config, "two worlds")


@pytest.mark.parametrize("settings", [{"hops": 2}, {"dropout": 0.1}, {"max_degree": 4}])
def test_where_something_else_is_hidden_the_ratio_is_not_used(settings: dict[str, object]) -> None:
    small = settings_for("rows", find_method(PAPER))
    config = load_config(None, {**small, "method": PAPER, "batch_size": 50, **settings})
    assert kind_of(canaries_for("rows", config, count=2), config) == "learned"
