"""Users who know one another through shops: the shops hand on what they hear, on every graph."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.test_relayed_rows import NODES, SHOPS, USERS, users_and_shops

from vesper import Graph, Vesper
from vesper.errors import VesperError
from vesper.mechanism.door import OpenDoor
from vesper.method.base import FittedConstants
from vesper.method.certified.message_builder import MessageBuilder
from vesper.method.certified.probe import ProbeSettings
from vesper.method.certified.relay import Relay
from vesper.model.evaluation import evaluate
from vesper.model.feature_scaling import FeatureScaling, Inputs

TRAIN = 600
QUICK = {"epochs": 12, "width": 16, "members": 1}


def of_shops() -> tuple[Graph, np.ndarray, np.ndarray]:
    edges, rows = users_and_shops()
    labels = np.concatenate([(rows[:USERS, 1] > 0).numpy(), np.full(SHOPS, -1)]).astype(np.int64)
    features = np.random.default_rng(1).normal(size=(NODES, 3)).astype(np.float32)
    return Graph.from_edges(NODES, edges), features, labels


@pytest.mark.parametrize("hops", [1, 2])
def test_users_are_told_of_each_other(hops: int) -> None:
    graph, features, labels = of_shops()
    test = np.arange(TRAIN + 100, USERS)
    held_out = np.arange(TRAIN, TRAIN + 100)
    model = Vesper(epsilon=math.inf, hops=hops, seed=0, settings=QUICK)
    model.fit(graph, features, labels, train=np.arange(TRAIN), validation=held_out)
    assert evaluate(model.predict_proba(test), labels[test]) > 85, "features say nothing"
    assert model.stage_ == hops


def saying(
    features: np.ndarray, constants: FittedConstants, *, aggregator: str = "gin", asks: bool = True
) -> MessageBuilder:
    return MessageBuilder(
        Inputs(features, FeatureScaling(features)),
        constants,
        aggregator=aggregator,
        probe_settings=ProbeSettings(
            noise_std=0.0 if asks else None, content_share=0.1 if asks else 0.0, degree_share=0.6
        ),
    )


def said(made: MessageBuilder, graph: Graph, labels: np.ndarray) -> torch.Tensor:
    """Messages of the only hop."""
    label_posteriors = np.eye(2, dtype=np.float32)[labels[:TRAIN]]
    made.set_labels(np.arange(TRAIN), label_posteriors, np.arange(TRAIN, USERS))
    logits = torch.randn(NODES, 2, generator=torch.Generator().manual_seed(0))
    made.run_probe(OpenDoor(graph), logits, next_noise_std=0.0)
    beliefs = made.beliefs(logits)
    centre = beliefs.mean(dim=0)
    made.release_relay_input(OpenDoor(graph), beliefs, centre=centre, noise_std=0.0)
    return made.messages(1, beliefs, centre=centre, released=[])


def test_shops_hand_on_on_another_graph_too() -> None:
    graph, features, labels = of_shops()
    constants = FittedConstants()
    first = said(saying(features, constants), graph, labels)
    assert constants.get("relay") is not None
    assert first[USERS:, 1].std() > 0.1, "shops differ in what they hear"
    edges, rows = users_and_shops(seed=5)
    other = Graph.from_edges(NODES, edges)
    kept = FittedConstants()
    kept.load_fitted(constants.arrays())
    again = said(saying(features, kept, asks=False), other, (rows[:, 1] > 0).long().numpy())
    assert again[USERS:, 1].std() > 0.1
    assert kept.get("relay_size") == constants.get("relay_size")


def test_only_plain_sums_are_handed_on() -> None:
    graph, features, labels = of_shops()
    constants = FittedConstants()
    said(saying(features, constants, aggregator="mean"), graph, labels)
    assert constants.get("relay") is None


def test_what_the_only_hop_costs_is_split_where_nothing_was_asked() -> None:
    graph, features, labels = of_shops()
    constants, noise_stds = FittedConstants(), []

    class Listening(OpenDoor):
        def release(self, messages: Any, *, noise_std: float, **how: Any) -> Any:
            noise_stds.append(noise_std)
            return super().release(messages, noise_std=0.0, **how)

    said(saying(features, constants), graph, labels)
    made = saying(features, constants, asks=False)
    beliefs = torch.full((NODES, 2), 0.5)
    residuals = made.release_relay_input(
        Listening(graph), beliefs, centre=beliefs.mean(dim=0), noise_std=2.0
    )
    assert len(noise_stds) == 1
    assert 1 / noise_stds[0] ** 2 + 1 / residuals**2 <= 1 / 2.0**2


def test_nothing_that_was_not_heard_is_handed_on() -> None:
    graph, features, labels = of_shops()
    constants = FittedConstants()
    said(saying(features, constants), graph, labels)
    made = saying(features, constants, asks=False)
    beliefs = torch.full((NODES, 2), 0.5)
    with pytest.raises(VesperError, match="nothing was heard"):
        made.messages(1, beliefs, centre=beliefs.mean(dim=0), released=[])


def test_sums_of_classes_are_read_as_they_are() -> None:
    nodes = np.arange(2)
    relay = Relay(FittedConstants(), hops=1)
    read = relay.read_sums(
        torch.zeros(3, 3), labelled_nodes=nodes, query_nodes=nodes, noise_std=1.0
    )
    assert read is None
    assert not relay.applies_before(1)


def test_what_others_will_not_hear_is_left_out() -> None:
    relay = Relay(FittedConstants(), hops=1)
    relay.activate()
    relay.set_own_rows(torch.zeros(80, 2))
    heard = torch.tensor([[5.0, 4.0, -4.0], [5.0, -4.0, 4.0]]).repeat(40, 1)
    relay.messages(heard, degree_share=0.6)
    no_progress = torch.tensor([[5.0, 0.0, 0.0]]).repeat(40, 1)
    released = torch.cat([heard[:40], no_progress])
    labelled_nodes, query_nodes = np.arange(40), np.arange(40, 80)
    read = relay.read_sums(
        released, labelled_nodes=labelled_nodes, query_nodes=query_nodes, noise_std=0.0
    )
    assert read is not None
    assert not read[:, 1:].any()
    assert (read[:, 0] == 5).all(), "degrees were heard"
