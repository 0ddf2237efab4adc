"""A recording door returns what its door returns, and records it."""

import numpy as np
import pytest

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import from_grid
from vesper.mechanism.door import ClaimedDoor, ClosedDoor, OpenDoor
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.recording_door import RecordingDoor

GRAPH = Graph.from_edges(4, [(0, 1), (1, 2)])
MESSAGES = np.eye(4, dtype=np.float32)


def test_releases_are_recorded_and_unchanged() -> None:
    plain = ClaimedDoor(GRAPH, noise=NoiseSource.for_simulation(3))
    door = RecordingDoor(ClaimedDoor(GRAPH, noise=NoiseSource.for_simulation(3)))
    released = door.release(MESSAGES, noise_std=1.5)
    assert np.array_equal(released, plain.release(MESSAGES, noise_std=1.5))
    (record,) = door.releases
    assert np.array_equal(record.released, released)
    assert record.noise_std == 1.5
    assert np.array_equal(from_grid(record.messages.astype(np.int32)), MESSAGES)
    released[:] = 0  # callers may change what they get
    assert record.released.any()


def test_graphs_are_recorded_and_other_calls_forwarded() -> None:
    door = RecordingDoor(OpenDoor(GRAPH))
    assert door.perturb(None) is GRAPH
    assert door.noisy_graphs == [GRAPH]
    assert not door.flips_edges_independently
    assert door.uncertified_graph() is GRAPH
    assert door.spending_summary() == ""
    with pytest.raises(ValueError, match="closed door"):
        RecordingDoor(ClosedDoor()).uncertified_graph()
