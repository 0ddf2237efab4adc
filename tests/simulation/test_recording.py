"""Watching a run changes nothing, and what is noted is what was shown."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.audit.small_graphs import ring
from vesper.mechanism.door import OpenDoor
from vesper.method.base import Method
from vesper.party.representation import Nodes, Representation
from vesper.session.config import load_config
from vesper.session.run_spec import agree
from vesper.simulation.in_process import train
from vesper.simulation.recording import Layer, ShownMethod

SMALL = {"epochs": 2, "width": 4, "batch_size": 50, "patience": 9, "hops": 1, "epsilon": 8.0}
HELD = ring(split="train", count=1)


def weights(method: Method, name: str) -> dict[str, NDArray[np.float32]]:
    config = load_config(None, {**SMALL, "method": name})
    agreement = replace(agree(config, HELD.data, HELD.labels), method=method)
    door = OpenDoor(HELD.data.graph)
    module = train(agreement, HELD.data, HELD.labels, door).data_side.module
    return {key: value.numpy() for key, value in module.state_dict().items()}


@pytest.mark.parametrize("name", ["vesper-paper-gin", "vfgnn", "gin"])
def test_a_watched_run_is_the_same_run(name: str) -> None:
    method = agree(load_config(None, {**SMALL, "method": name}), HELD.data, HELD.labels).method
    watched = ShownMethod(method)
    plain, seen = weights(method, name), weights(watched, name)
    assert plain.keys() == seen.keys()
    assert all(np.array_equal(plain[key], seen[key]) for key in plain)
    sums = watched.shown.sums
    assert sums is not None
    assert sums.shape == (148, 4)
    # Training nodes twice, validation nodes twice and in the end, test nodes in the end.
    assert watched.shown.times.tolist() == [2] * 100 + [3] * 40 + [1] * 8


def test_a_seed_draws_other_noise_and_a_watch_sees_every_row() -> None:
    name = "vesper-paper-gin"
    method = agree(load_config(None, {**SMALL, "method": name}), HELD.data, HELD.labels).method
    noise: list[float] = []

    def watch(inner: Representation, nodes: Nodes, layers: list[Layer]) -> None:
        assert len(layers) == 1
        noise.extend((layers[0].perturbed - layers[0].means).flatten().tolist())

    first, second = (
        ShownMethod(method, noise_seed=1, watch=watch),
        ShownMethod(method, noise_seed=2),
    )
    weights(first, name)
    weights(second, name)
    assert first.shown.sums is not None
    assert second.shown.sums is not None
    assert not np.array_equal(first.shown.sums, second.shown.sums)
    config = load_config(None, {**SMALL, "method": name})
    agreement = agree(config, HELD.data, HELD.labels)
    promised = agreement.method.promise(config, agreement.sizes).noise_stds[0]
    assert len(noise) == 4 * first.shown.times.sum()
    assert np.std(noise) == pytest.approx(promised, rel=0.1)
