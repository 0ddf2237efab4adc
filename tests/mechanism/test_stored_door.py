"""Releases that are captured in training and given out again."""

import numpy as np
import pytest

from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.door import ClosedDoor, OpenDoor
from vesper.mechanism.stored_door import CapturingDoor, StoredDoor

GRAPH = Graph.from_edges(4, [(0, 1), (1, 2)])
MESSAGES = np.eye(4, dtype=np.float32)


def test_what_was_captured_is_given_out_in_order() -> None:
    door = CapturingDoor(OpenDoor(GRAPH))
    first = door.release(MESSAGES, noise_std=0.0)
    second = door.release(MESSAGES / np.float32(2), noise_std=0.0)
    kept = first.copy()
    first[:] = 0  # whoever uses a release may write into it
    stored = StoredDoor(door.releases)
    assert np.array_equal(stored.release(MESSAGES, noise_std=1.0), kept)
    assert np.array_equal(stored.release(MESSAGES, noise_std=1.0), second)
    assert not door.gave_out_graph
    with pytest.raises(VesperError, match="stored release 2: expected sums, found none"):
        stored.release(MESSAGES, noise_std=1.0)


def test_the_graph_itself_is_noticed_and_never_given_out() -> None:
    door = CapturingDoor(OpenDoor(GRAPH))
    assert door.uncertified_graph() is GRAPH
    assert door.gave_out_graph
    door = CapturingDoor(OpenDoor(GRAPH))
    assert door.perturb(None) is GRAPH
    assert door.gave_out_graph
    with pytest.raises(ValueError, match="not the graph"):
        StoredDoor([]).uncertified_graph()
    assert CapturingDoor(ClosedDoor()).spending_summary() == StoredDoor([]).spending_summary() == ""


def test_releases_of_another_shape_or_kind_are_refused() -> None:
    door = CapturingDoor(OpenDoor(GRAPH))
    door.release(MESSAGES, noise_std=0.0)
    with pytest.raises(VesperError, match=r"expected shape \(4, 2\), found \(4, 4\)"):
        StoredDoor(door.releases).release(MESSAGES[:, :2], noise_std=0.0)
    with pytest.raises(VesperError, match="expected indptr and neighbors, found none"):
        StoredDoor(door.releases).perturb(None)


def test_a_graph_of_noisy_edges_is_stored() -> None:
    arrays = {"indptr": GRAPH.indptr, "neighbors": GRAPH.neighbors}
    noisy = StoredDoor([arrays]).perturb(None)
    assert noisy.neighbors.tolist() == GRAPH.neighbors.tolist()
