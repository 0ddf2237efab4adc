"""What the trial finds is said in the first hop, and said again on another graph."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.base import FittedConstants
from vesper.method.certified.message_builder import MessageBuilder
from vesper.method.certified.probe import ProbeSettings
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.party.representation import NO_NODES

NODES, TRAIN = 800, 600
Floats = NDArray[np.float32]


def graph_and_features(seed: int) -> tuple[Graph, Floats, NDArray[np.int64]]:
    """The label is the sign of the sum of neighbours' second feature."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, NODES, (4 * NODES, 2))
    graph = Graph.from_edges(NODES, edges[edges[:, 0] != edges[:, 1]])
    features = rng.normal(size=(NODES, 4)).astype(np.float32)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    heard = OpenDoor(graph).release(unit[:, 1:2].copy(), noise_std=0.0)[:, 0]
    return graph, features, (heard > 0).astype(np.int64)


def saying(
    features: Floats,
    constants: FittedConstants,
    *,
    noise_std: float | None = 0.0,
    aggregator: str = "gin",
) -> MessageBuilder:
    return MessageBuilder(
        Inputs(features, FeatureScaling(features)),
        constants,
        aggregator=aggregator,
        probe_settings=ProbeSettings(noise_std=noise_std, content_share=0.1, degree_share=0.6),
    )


def said(made: MessageBuilder, logits: torch.Tensor) -> torch.Tensor:
    beliefs = made.beliefs(logits)
    return made.messages(1, beliefs, centre=beliefs.mean(dim=0), released=[])


def test_features_vote_on_every_other_graph_too() -> None:
    graph, features, labels = graph_and_features(0)
    constants, logits = FittedConstants(), torch.zeros(NODES, 2)
    made = saying(features, constants)
    made.set_labels(np.arange(TRAIN), np.eye(2, dtype=np.float32)[labels[:TRAIN]], NO_NODES)
    before = said(made, logits)
    made.run_probe(OpenDoor(graph), logits, next_noise_std=0.0)
    messages = said(made, logits)
    assert not torch.equal(messages, before)
    assert np.corrcoef(messages[:, 2], features[:, 1])[0, 1] > 0.8
    assert messages.norm(dim=1).max() <= 1 + 1e-5

    kept = FittedConstants()
    kept.load_fitted(constants.arrays())
    _, others, _ = graph_and_features(1)
    later = saying(others, kept, noise_std=None)
    later.set_labels(NO_NODES, np.zeros((0, 2), dtype=np.float32), NO_NODES)
    again = said(later, logits)
    assert np.corrcoef(again[:, 2], others[:, 1])[0, 1] > 0.8
    assert later.degree_share == made.degree_share


@pytest.mark.parametrize("classes_tell", [False, True])
def test_later_hops_say_classes_where_they_tell(classes_tell: bool) -> None:
    graph, features, labels = graph_and_features(0)
    constants, logits = FittedConstants(), torch.zeros(NODES, 2)
    made = saying(features, constants)
    made.set_labels(np.arange(TRAIN), np.eye(2, dtype=np.float32)[labels[:TRAIN]], NO_NODES)
    made.run_probe(OpenDoor(graph), logits, next_noise_std=0.0)
    if classes_tell:
        constants.load_fitted(constants.arrays() | {"project_later_hops": np.array(False)})
    first = said(made, logits)
    second = made.messages(2, made.beliefs(logits), centre=torch.zeros(2), released=[first])
    assert torch.equal(second, first) is not classes_tell


def test_votes_are_shortened_by_released_degrees_as_classes_are() -> None:
    graph, features, labels = graph_and_features(0)
    logits, degrees = torch.zeros(NODES, 2), torch.from_numpy(np.diff(graph.indptr)).float()
    made = saying(features, FittedConstants(), aggregator="gcn")
    made.set_labels(np.arange(TRAIN), np.eye(2, dtype=np.float32)[labels[:TRAIN]], NO_NODES)
    made.run_probe(OpenDoor(graph), logits, next_noise_std=0.0)
    first = said(made, logits)
    released = torch.zeros(NODES, 3)
    released[:, 0] = degrees * made.degree_share
    second = made.messages(2, made.beliefs(logits), centre=torch.zeros(2), released=[released])
    many = degrees > 2 * degrees.median()
    assert (second.norm(dim=1) < 0.9 * first.norm(dim=1))[many].all()
