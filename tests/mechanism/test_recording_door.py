"""A watched door gives what its door gives, and notes it."""

import numpy as np
import pytest

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import from_grid
from vesper.mechanism.door import ClaimedDoor, ClosedDoor, OpenDoor
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.recording_door import RecordingDoor

GRAPH = Graph.from_edges(4, [(0, 1), (1, 2)])
MESSAGES = np.eye(4, dtype=np.float32)


def test_what_comes_out_is_noted_and_unchanged() -> None:
    plain = ClaimedDoor(GRAPH, noise=NoiseSource.for_simulation(3))
    door = RecordingDoor(ClaimedDoor(GRAPH, noise=NoiseSource.for_simulation(3)))
    released = door.release(MESSAGES, noise_std=1.5)
    assert np.array_equal(released, plain.release(MESSAGES, noise_std=1.5))
    (note,) = door.releases
    assert np.array_equal(note.released, released)
    assert note.noise_std == 1.5
    assert np.array_equal(from_grid(note.messages.astype(np.int32)), MESSAGES)
    released[:] = 0  # whoever got it may change it
    assert note.released.any()


def test_graphs_are_noted_and_everything_else_is_handed_on() -> None:
    door = RecordingDoor(OpenDoor(GRAPH))
    assert door.perturb(None) is GRAPH
    assert door.noisy_graphs == [GRAPH]
    assert not door.flips_edges_independently
    assert door.uncertified_graph() is GRAPH
    assert door.spending_summary() == ""
    with pytest.raises(ValueError, match="closed door"):
        RecordingDoor(ClosedDoor()).uncertified_graph()
