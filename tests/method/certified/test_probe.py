"""What is asked before the first hop, and what is kept of the answer."""

from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.door import ClaimedDoor, Door
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.method.base import FittedConstants
from vesper.method.certified.feature_projection import FeatureProjection, projection_length
from vesper.method.certified.probe import NodeRoles, ProbeFindings, ProbeRunner, ProbeSettings
from vesper.method.certified.relay import Relay
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.party.representation import NO_NODES

NODES, TRAIN, SHARE = 800, 600, 0.6


def of_degrees() -> tuple[Graph, NDArray[np.int64]]:
    """The label is whether a node has many neighbours."""
    rng = np.random.default_rng(2)
    ends = np.repeat(np.arange(NODES), rng.integers(1, 30, NODES))
    edges = np.column_stack([ends, rng.integers(0, NODES, len(ends))])
    graph = Graph.from_edges(NODES, edges[edges[:, 0] != edges[:, 1]])
    return graph, (np.diff(graph.indptr) > 30).astype(np.int64)


def asked(
    door: Door,
    labels: NDArray[np.int64],
    constants: FittedConstants,
    *,
    noise_std: float | None = 20.0,
    content_share: float = 0.1,
    degree_share_is_fixed: bool = False,
    listeners: NDArray[np.int64] = NO_NODES,
) -> ProbeFindings | None:
    """What is learned where features tell nothing."""
    features = np.random.default_rng(3).normal(size=(NODES, 3)).astype(np.float32)
    inputs = Inputs(features, FeatureScaling(features))
    enquiry = ProbeRunner(
        inputs,
        constants,
        FeatureProjection(inputs, constants, length=projection_length(ordered=False)),
        Relay(constants, hops=1),
        ProbeSettings(
            noise_std=noise_std,
            content_share=content_share,
            degree_share=SHARE,
            degree_share_is_fixed=degree_share_is_fixed,
        ),
    )
    label_posteriors = torch.nn.functional.one_hot(torch.from_numpy(labels), 2).float()
    roles = NodeRoles(np.arange(len(labels)), label_posteriors, listeners)
    beliefs = partial(torch.full, (NODES, 2), 0.5)
    return enquiry.run(door, roles, beliefs, next_noise_std=6.0, can_relay=True)


def door_to(graph: Graph) -> Door:
    return ClaimedDoor(graph, noise=NoiseSource.for_simulation(0))


def test_a_share_that_was_asked_for_is_kept() -> None:
    graph, labels = of_degrees()
    found, kept = FittedConstants(), FittedConstants()
    asked(door_to(graph), labels[:TRAIN], found)
    asked(door_to(graph), labels[:TRAIN], kept, degree_share_is_fixed=True)
    share = found.get("degree_share")
    assert share is not None
    assert share > SHARE, "the label is the degree"
    assert kept.get("degree_share") is None


def test_what_was_found_stays_whatever_is_asked_again() -> None:
    graph, labels = of_degrees()
    constants = FittedConstants()
    asked(door_to(graph), labels[:TRAIN], constants)
    before = {name: value.copy() for name, value in constants.arrays().items()}
    asked(door_to(graph), 1 - labels[:TRAIN], constants, noise_std=1.0)
    assert constants.arrays().keys() == before.keys()
    assert all(np.array_equal(constants.arrays()[name], value) for name, value in before.items())


def test_without_a_trial_only_who_listens_is_asked() -> None:
    graph, labels = of_degrees()
    listeners, constants = np.arange(TRAIN, NODES), FittedConstants()
    findings = asked(
        door_to(graph),
        labels[:TRAIN],
        constants,
        content_share=0.0,
        noise_std=1.0,
        listeners=listeners,
    )
    assert findings is not None
    assert findings.use_labels
    assert (findings.decision, findings.sums) == (None, None)
    assert list(constants.arrays()) == ["use_labels"]


class Shut(ClaimedDoor):
    """A door that nobody may knock at."""

    def release(self, *_: object, **__: object) -> NDArray[np.float32]:
        raise AssertionError("nothing was to be asked")


@pytest.mark.parametrize(
    ("train", "noise_std", "content_share"),
    [(TRAIN, None, 0.1), (0, 0.0, 0.1), (TRAIN, 0.0, 0.0)],
    ids=["no budget", "no labels", "nobody listens"],
)
def test_nothing_is_asked(train: int, noise_std: float | None, content_share: float) -> None:
    graph, labels = of_degrees()
    door = Shut(graph, noise=NoiseSource.for_simulation(0))
    constants = FittedConstants()
    findings = asked(
        door, labels[:train], constants, noise_std=noise_std, content_share=content_share
    )
    assert findings is None
    assert constants.arrays() == {}
