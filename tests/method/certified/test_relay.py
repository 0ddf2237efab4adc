"""Where users are connected only through shops, shops relay their sums, on every graph."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.test_relayed_rows import NODES, SHOPS, USERS, users_and_shops

from vesper import Graph, Vesper
from vesper.mechanism.door import OpenDoor
from vesper.method.base import PublicSizes
from vesper.method.certified.fitted_constants import FittedConstants
from vesper.method.certified.method import CertifiedMethod
from vesper.method.certified.relay import Relay
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.model.evaluation import evaluate
from vesper.party.representation import NO_NODES
from vesper.session.config import load_config

TRAIN = 600
QUICK = {"epochs": 12, "width": 16, "members": 1}
FEATURES = np.random.default_rng(1).normal(size=(NODES, 3)).astype(np.float32)
Releases = list[tuple[float, np.ndarray]]


def shops_graph(seed: int = 0) -> tuple[Graph, np.ndarray]:
    edges, rows = users_and_shops(seed=seed)
    labels = np.concatenate([(rows[:USERS, 1] > 0).numpy(), np.full(SHOPS, -1)]).astype(np.int64)
    return Graph.from_edges(NODES, edges), labels


@pytest.mark.parametrize("hops", [1, 2])
def test_users_learn_from_each_other_through_shops(hops: int) -> None:
    graph, labels = shops_graph()
    test = np.arange(TRAIN + 100, USERS)
    held_out = np.arange(TRAIN, TRAIN + 100)
    model = Vesper(epsilon=math.inf, hops=hops, seed=0, simulate_noise=True, settings=QUICK)
    model.fit(graph, FEATURES, labels, train=np.arange(TRAIN), validation=held_out)
    assert evaluate(model.predict_proba(test), labels[test]) > 85, "features explain nothing"
    assert model.stage_ == hops


class RecordingOpenDoor(OpenDoor):
    """Records the noise and the messages of each release, and adds no noise."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.releases: Releases = []

    def release(self, messages: Any, *, noise_std: float, **how: Any) -> Any:
        self.releases.append((noise_std, messages.copy()))
        return super().release(messages, noise_std=0.0, **how)


def representation_at_stage_1(
    door: OpenDoor, labels: np.ndarray | None, fitted: Any = None, **settings: Any
) -> StagedRepresentation:
    """A representation at stage 1: on the training graph or, without labels, on a later one."""
    config = load_config(None, {"hops": 1, **QUICK, **settings})
    sizes = PublicSizes(num_nodes=NODES, num_train=TRAIN, num_features=3, num_classes=2)
    method = CertifiedMethod()
    made = method.make_representation(
        config, sizes, noise_plan=method.noise_plan(config, sizes), features=FEATURES, door=door
    )
    assert isinstance(made, StagedRepresentation)
    if fitted is not None:
        made.load_fitted(fitted)
    if labels is not None:
        posteriors = np.eye(2, dtype=np.float32)[labels[:TRAIN]]
        made.set_labels(np.arange(TRAIN), posteriors, np.arange(TRAIN, USERS))
    else:
        made.set_labels(NO_NODES, np.zeros((0, 2), dtype=np.float32))
    made.begin_stage(0)
    made.begin_stage(1)
    return made


def test_shops_relay_received_sums_on_a_later_graph_too() -> None:
    graph, labels = shops_graph()
    door = RecordingOpenDoor(graph)
    fitted = representation_at_stage_1(door, labels, epsilon=math.inf).fitted_arrays()
    assert fitted["constants/relay"]
    assert len(door.releases) == 2, "the probe and the hop"
    _, messages = door.releases[-1]
    assert messages[USERS:, 1].std() > 0.1, "shops receive different sums"

    later = RecordingOpenDoor(shops_graph(seed=5)[0])
    again = representation_at_stage_1(later, None, fitted, epsilon=math.inf).fitted_arrays()
    assert len(later.releases) == 2, "the relay input and the hop"
    (_, classes), (_, relayed) = later.releases
    assert not np.allclose(classes, relayed)
    assert again["constants/relay_size"] == fitted["constants/relay_size"]


def test_without_a_probe_the_budget_of_the_only_hop_is_split() -> None:
    graph, labels = shops_graph()
    fitted = representation_at_stage_1(
        RecordingOpenDoor(graph), labels, epsilon=math.inf
    ).fitted_arrays()
    whole, later = RecordingOpenDoor(graph), RecordingOpenDoor(graph)
    representation_at_stage_1(whole, None, epsilon=4.0)
    representation_at_stage_1(later, None, fitted, epsilon=4.0)
    (planned, _), (first, _), (second, _) = *whole.releases, *later.releases
    assert 0 < 1 / planned**2 - (1 / first**2 + 1 / second**2) < 1e-6


def test_only_plain_sums_are_relayed() -> None:
    graph, labels = shops_graph()
    fitted = representation_at_stage_1(
        RecordingOpenDoor(graph), labels, epsilon=math.inf, aggregator="mean"
    ).fitted_arrays()
    assert "constants/relay" not in fitted


def test_a_relay_reads_nothing_where_nothing_was_relayed() -> None:
    nodes = np.arange(2)
    relay = Relay(FittedConstants(), hops=1)
    read = relay.read_sums(
        torch.zeros(3, 3), labelled_nodes=nodes, query_nodes=nodes, noise_std=1.0
    )
    assert read is None
    assert not relay.applies_before(1)


def test_class_sums_are_zeroed_where_query_nodes_receive_no_signal() -> None:
    relay = Relay(FittedConstants(relay=True), hops=1)
    relay.set_own_rows(torch.zeros(80, 2))
    sums = torch.tensor([[5.0, 4.0, -4.0], [5.0, -4.0, 4.0]]).repeat(40, 1)
    relay.messages(sums, degree_share=0.6, weights=sums[:, 0])
    released = torch.cat([sums[:40], torch.tensor([[5.0, 0.0, 0.0]]).repeat(40, 1)])
    labelled_nodes, query_nodes = np.arange(40), np.arange(40, 80)
    read = relay.read_sums(
        released, labelled_nodes=labelled_nodes, query_nodes=query_nodes, noise_std=0.0
    )
    assert read is not None
    assert not read[:, 1:].any()
    assert (read[:, 0] == 5).all()
