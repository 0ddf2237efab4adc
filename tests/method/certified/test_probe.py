"""The probe's messages fit the grid, and it is released only where it can decide something."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import to_grid
from vesper.mechanism.door import OpenDoor
from vesper.method.certified.fitted_constants import FittedConstants
from vesper.method.certified.probe import NodeRoles, Probe, ProbeSettings
from vesper.method.certified.probe_size import PartLengths
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.party.representation import NO_NODES

NODES, TRAIN, FEATURES = 400, 300, 3


def graph() -> Graph:
    edges = np.random.default_rng(0).integers(0, NODES, (3 * NODES, 2))
    return Graph.from_edges(NODES, edges[edges[:, 0] != edges[:, 1]])


def roles(*, train: int = TRAIN, query_nodes: NDArray[np.int64] = NO_NODES) -> NodeRoles:
    posteriors = torch.eye(2)[torch.arange(train) % 2]
    return NodeRoles(np.arange(train), posteriors, query_nodes)


def probe(
    constants: FittedConstants | None = None,
    *,
    noise_std: float | None = 0.0,
    content_share: float = 0.1,
) -> Probe:
    features = np.random.default_rng(3).normal(size=(NODES, FEATURES)).astype(np.float32)
    return Probe(
        ProbeSettings(noise_std=noise_std, content_share=content_share, degree_share=0.6),
        Inputs(features, FeatureScaling(features)),
        constants or FittedConstants(),
    )


BELIEFS = torch.eye(2)[torch.arange(NODES) % 2]


def test_messages_have_all_parts_and_fit_the_grid() -> None:
    messages, lengths = probe().messages(roles(), BELIEFS), PartLengths.for_share(0.1)
    assert messages.shape == (NODES, 2 + 2 + FEATURES)
    assert np.linalg.norm(messages, axis=1)[:TRAIN] == pytest.approx(1, abs=1e-6)
    assert (messages[:TRAIN, 0] == np.float32(lengths.label_reach)).all()
    assert not messages[TRAIN:, 0].any()
    to_grid(messages)


def test_label_reach_alone_needs_one_column() -> None:
    messages = probe(content_share=0.0).messages(roles(), BELIEFS)
    assert messages.shape == (NODES, 1)
    assert messages.ravel().tolist() == [1.0] * TRAIN + [0.0] * (NODES - TRAIN)


def test_components_are_fitted_once() -> None:
    constants = FittedConstants(components=2 * torch.eye(FEATURES)[:, :1])
    assert probe(constants).messages(roles(), BELIEFS).shape == (NODES, 2 + 2 + 1)
    probe(constants := FittedConstants()).messages(roles(), BELIEFS)
    assert constants.components is not None
    assert torch.equal(constants.components, torch.eye(FEATURES))


def test_a_probe_release_contains_what_is_needed_to_read_it() -> None:
    made = probe()
    messages = made.messages(roles(), BELIEFS)
    release = made.run(OpenDoor(graph()), messages, roles())
    assert (release.has_content, release.num_classes, release.noise_std) == (True, 2, 0.0)
    assert release.rows.shape == messages.shape
    assert np.linalg.norm(release.own_components, axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("train", "noise_std", "content_share"),
    [(TRAIN, None, 0.1), (0, 0.0, 0.1), (TRAIN, 0.0, 0.0)],
    ids=["no budget", "no labels", "no query nodes"],
)
def test_nothing_is_released_where_nothing_can_be_decided(
    train: int, noise_std: float | None, content_share: float
) -> None:
    made = probe(noise_std=noise_std, content_share=content_share)
    assert not made.is_needed(roles(train=train))
    assert probe(content_share=0.0).is_needed(roles(query_nodes=np.arange(TRAIN, NODES)))
    assert probe().is_needed(roles())


def test_a_stored_release_of_another_width_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, door = probe(), OpenDoor(graph())
    messages = made.messages(roles(), BELIEFS)
    wider: Any = np.column_stack([messages, messages])
    monkeypatch.setattr(door, "release", lambda messages, noise_std: wider)
    with pytest.raises(VesperError, match="earlier version; start a new run"):
        made.run(door, messages, roles())
