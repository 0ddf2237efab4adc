"""Messages contain what the probe decided, in every hop and on every other graph."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.errors import VesperError
from vesper.method.certified.fitted_constants import FittedConstants
from vesper.method.certified.message_builder import MessageBuilder
from vesper.method.certified.message_content import MessageContent
from vesper.method.certified.probe import ProbeSettings
from vesper.method.certified.probe_decision import ProbeFindings
from vesper.method.certified.probe_sums import ReceivedSums
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.party.representation import NO_NODES

NODES, TRAIN, FEATURES = 800, 600, 4
SECOND_FEATURE = torch.zeros(FEATURES, 2, dtype=torch.float64)
SECOND_FEATURE[1] = torch.tensor([-1.0, 1.0])
PROJECTED = ProbeFindings(
    use_labels=True,
    content=MessageContent(degree_share=0.45, projection=SECOND_FEATURE, project_later_hops=True),
)
LOGITS = torch.zeros(NODES, 2)


def features_of(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(NODES, FEATURES)).astype(np.float32)


def builder(
    constants: FittedConstants,
    *,
    seed: int = 0,
    aggregator: str = "gin",
    degree_share_is_fixed: bool = False,
    hops: int = 1,
) -> MessageBuilder:
    features = features_of(seed)
    constants.components = torch.eye(FEATURES)
    made = MessageBuilder(
        Inputs(features, FeatureScaling(features)),
        constants,
        aggregator=aggregator,
        settings=ProbeSettings(
            noise_std=0.0,
            content_share=0.1,
            degree_share=0.6,
            degree_share_is_fixed=degree_share_is_fixed,
        ),
        hops=hops,
    )
    made.set_labels(np.arange(TRAIN), np.eye(2, dtype=np.float32)[np.arange(TRAIN) % 2], NO_NODES)
    return made


def messages_of(made: MessageBuilder, stage: int = 1, *released: torch.Tensor) -> torch.Tensor:
    beliefs = made.beliefs(LOGITS)
    return made.messages(stage, beliefs, centre=beliefs.mean(dim=0), released=released)


def test_messages_contain_labels_until_the_probe_decides_otherwise() -> None:
    made = builder(FittedConstants())
    rows = messages_of(made)[:TRAIN, 1:]
    assert rows.argmax(dim=1).tolist() == [k % 2 for k in range(TRAIN)]
    made.adopt(ProbeFindings(use_labels=False))
    assert not messages_of(made)[:, 1:].any(), "all posteriors are equal"


def test_features_are_projected_on_a_later_graph_too() -> None:
    constants = FittedConstants()
    made = builder(constants)
    made.adopt(PROJECTED)
    messages = messages_of(made)
    assert np.corrcoef(messages[:, 2], features_of(0)[:, 1])[0, 1] > 0.8
    assert messages.norm(dim=1).max() <= 1 + 1e-5
    assert messages[:, 0].tolist() == pytest.approx([0.45] * NODES)

    stored = FittedConstants()
    stored.load(constants.arrays())
    later = builder(stored, seed=1)
    again = messages_of(later)
    assert np.corrcoef(again[:, 2], features_of(1)[:, 1])[0, 1] > 0.8
    assert later.degree_share == made.degree_share
    assert stored.projection_size == constants.projection_size


def test_a_decision_is_not_replaced_by_later_findings() -> None:
    constants = FittedConstants()
    made = builder(constants)
    made.adopt(PROJECTED)
    before = constants.arrays()
    made.adopt(ProbeFindings(use_labels=False, content=MessageContent(degree_share=0.9)))
    assert constants.arrays().keys() == before.keys()
    assert all(np.array_equal(constants.arrays()[name], before[name]) for name in before)


def test_a_degree_share_set_by_the_user_is_not_replaced() -> None:
    made = builder(FittedConstants(), degree_share_is_fixed=True)
    made.adopt(PROJECTED)
    assert made.degree_share == 0.6


@pytest.mark.parametrize("project_later_hops", [True, False])
def test_later_hops_contain_classes_unless_they_are_projected_too(project_later_hops: bool) -> None:
    constants = FittedConstants()
    made = builder(constants)
    made.adopt(PROJECTED)
    constants.project_later_hops = project_later_hops
    first = messages_of(made)
    assert torch.equal(messages_of(made, 2, first), first) is project_later_hops


def test_gcn_damps_messages_of_nodes_with_many_neighbours() -> None:
    made = builder(FittedConstants(), aggregator="gcn")
    made.adopt(PROJECTED)
    degrees = torch.arange(NODES).float()
    first, released = messages_of(made), torch.zeros(NODES, 3)
    released[:, 0] = degrees * made.degree_share
    second = messages_of(made, 2, released)
    many = degrees > 2 * degrees.median()
    assert (second.norm(dim=1) < 0.9 * first.norm(dim=1))[many].all()


def received() -> ReceivedSums:
    return ReceivedSums(torch.zeros(NODES, 3), torch.ones(3), torch.ones(NODES))


def test_sums_of_the_probe_are_used_once() -> None:
    made = builder(FittedConstants(use_labels=True))
    made.set_received_sums(received())
    released = torch.ones(NODES, 3)
    first = made.read(released.clone(), noise_std=1.0)
    assert not torch.equal(first, released)
    assert torch.equal(made.read(released.clone(), noise_std=1.0), released)


@pytest.mark.parametrize(
    "constants",
    [
        FittedConstants(use_labels=False),
        FittedConstants(use_labels=True, projection=SECOND_FEATURE),
    ],
    ids=["no labels", "projection"],
)
def test_sums_of_other_messages_are_not_combined(constants: FittedConstants) -> None:
    made = builder(constants)
    made.set_received_sums(received())
    released = torch.ones(NODES, 3)
    assert torch.equal(made.read(released.clone(), noise_std=1.0), released)


def test_a_relay_needs_sums_to_pass_on() -> None:
    made = builder(FittedConstants(relay=True))
    assert made.needs_relay_input(1)
    with pytest.raises(VesperError, match="no received sums to pass on"):
        messages_of(made)
    assert not builder(FittedConstants(relay=True), hops=2).needs_relay_input(1)
    assert not builder(FittedConstants()).needs_relay_input(1)
    made.add_relay_input(torch.ones(NODES, 3))
    assert not made.needs_relay_input(1)
    assert messages_of(made).shape == (NODES, 3)
