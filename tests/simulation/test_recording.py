"""Recording changes nothing in a run, and what is recorded is what was sent."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.audit.small_graphs import ring
from vesper.mechanism.door import OpenDoor
from vesper.method.base import Method
from vesper.party.representation import Nodes, Representation
from vesper.session.config import load_config
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train
from vesper.simulation.recording import LayerRows, RowRecordingMethod

SMALL = {"epochs": 2, "width": 4, "batch_size": 50, "patience": 9, "hops": 1, "epsilon": 8.0}
RING = ring(split="train", count=1)


def weights(method: Method, name: str) -> dict[str, NDArray[np.float32]]:
    config = load_config(None, {**SMALL, "method": name})
    run_spec = replace(run_spec_for(config, RING.data, RING.labels), method=method)
    door = OpenDoor(RING.data.graph)
    module = train(run_spec, RING.data, RING.labels, door).data_side.module
    return {key: value.numpy() for key, value in module.state_dict().items()}


@pytest.mark.parametrize("name", ["paper-gin", "vfgnn", "gin"])
def test_a_recorded_run_is_the_same_run(name: str) -> None:
    method = run_spec_for(
        load_config(None, {**SMALL, "method": name}), RING.data, RING.labels
    ).method
    recording = RowRecordingMethod(method)
    plain, recorded = weights(method, name), weights(recording, name)
    assert plain.keys() == recorded.keys()
    assert all(np.array_equal(plain[key], recorded[key]) for key in plain)
    sums = recording.recorder.sums
    assert sums is not None
    assert sums.shape == (148, 4)
    # Training nodes twice, validation nodes twice and at the end, test nodes at the end.
    assert recording.recorder.num_times.tolist() == [2] * 100 + [3] * 40 + [1] * 8


def test_a_seed_draws_other_noise_and_every_row_is_observed() -> None:
    name = "paper-gin"
    method = run_spec_for(
        load_config(None, {**SMALL, "method": name}), RING.data, RING.labels
    ).method
    noise: list[float] = []

    def row_observer(inner: Representation, nodes: Nodes, layers: list[LayerRows]) -> None:
        assert len(layers) == 1
        noise.extend((layers[0].perturbed - layers[0].means).flatten().tolist())

    first, second = (
        RowRecordingMethod(method, noise_seed=1, row_observer=row_observer),
        RowRecordingMethod(method, noise_seed=2),
    )
    weights(first, name)
    weights(second, name)
    assert first.recorder.sums is not None
    assert second.recorder.sums is not None
    assert not np.array_equal(first.recorder.sums, second.recorder.sums)
    config = load_config(None, {**SMALL, "method": name})
    run_spec = run_spec_for(config, RING.data, RING.labels)
    planned = run_spec.method.noise_plan(config, run_spec.sizes).noise_stds[0]
    assert len(noise) == 4 * first.recorder.num_times.sum()
    assert np.std(noise) == pytest.approx(planned, rel=0.1)
