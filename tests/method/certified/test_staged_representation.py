"""Stages of the certified method: what each charges, releases, trains and freezes."""

from pathlib import Path

import numpy as np
import pytest
import torch

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.door import ChargedDoor, Door, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.method.base import PublicSizes
from vesper.method.certified.method import CertifiedMethod
from vesper.party.representation import Representation
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config

RING = Graph.from_edges(12, [(k, (k + 1) % 12) for k in range(12)])
FEATURES = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
SIZES = PublicSizes(num_nodes=12, num_train=6, num_features=4, num_classes=3)
CONFIG = load_config(None, {"epsilon": 2.0, "delta": 1e-6, "hops": 2, "width": 8, "members": 2})
NODES = np.arange(12)


def charged(ledger: Path) -> ChargedDoor:
    account = open_graph_account(
        RING,
        "ring",
        ledger=Ledger(ledger, clock=lambda: 0.0),
        budget=Budget(epsilon=2.0, delta=1e-6),
        simulated=True,
    )
    return ChargedDoor(RING, account=account, noise=NoiseSource.for_simulation(0), run="test")


@pytest.fixture
def door(tmp_path: Path) -> ChargedDoor:
    return charged(tmp_path / "ledger.sqlite")


def untrained(door: Door) -> Representation:
    method = CertifiedMethod()
    noise_plan = method.noise_plan(CONFIG, SIZES)
    return method.make_representation(
        CONFIG, SIZES, noise_plan=noise_plan, features=FEATURES, door=door
    )


def labelled(door: ChargedDoor) -> Representation:
    representation = untrained(door)
    representation.set_labels(np.arange(6), np.eye(3, dtype=np.float32)[np.arange(6) % 3])
    return representation


def test_a_stage_is_charged_once_however_often_nodes_are_embedded(door: ChargedDoor) -> None:
    representation = labelled(door)
    representation.begin_stage(0)
    representation.embed(NODES, training=False)
    assert door.account.spent.max() == 0
    representation.begin_stage(1)
    spent = door.account.spent.copy()
    assert spent.min() > 0
    for _ in range(5):
        representation.embed(np.array([3, 1]), training=False)
    assert door.account.spent.tolist() == spent.tolist()


def test_a_release_beyond_the_budget_is_refused(door: ChargedDoor) -> None:
    representation = labelled(door)
    for stage in range(3):
        representation.begin_stage(stage)
    with pytest.raises(BudgetError, match="Requested"):
        labelled(door).begin_stage(1)


def test_gradients_reach_only_the_heads_of_the_present_stage(door: ChargedDoor) -> None:
    representation = labelled(door)
    for stage in range(2):
        representation.begin_stage(stage)
    embeddings = representation.embed(NODES, training=True)  # (12, 3, 3 + 1)
    assert embeddings.shape == (12, 3, 4)
    assert embeddings.requires_grad
    torch.autograd.backward([embeddings.sum()])
    learning = {name for name, w in representation.module.named_parameters() if w.grad is not None}
    assert learning
    assert {name.split(".")[1] for name in learning} == {"0", "1"}  # both members of stage 1
    assert all(name.startswith("heads.") for name in learning)


def test_logits_of_later_stages_are_zero_and_of_earlier_ones_frozen(door: ChargedDoor) -> None:
    representation = labelled(door)
    representation.module.eval()
    representation.begin_stage(0)
    first = representation.embed(NODES, training=False)
    representation.begin_stage(1)
    second = representation.embed(NODES, training=False)
    assert first[:, :, 1:3].abs().max() == 0
    assert torch.allclose(second[:, :, 0], first[:, :, 0])
    assert second[:, :, 1].abs().min() > 0
    assert second[:, :, 2].abs().max() == 0
    assert second[:, :, 3].abs().min() > 0  # the two members differ


def test_messages_of_training_nodes_contain_their_labels(door: ChargedDoor, tmp_path: Path) -> None:
    """With equal noise, other labels change the embeddings of neighbours of training nodes."""
    embeddings_by_shift = []
    for shift in (0, 1):
        other = charged(tmp_path / f"{shift}.sqlite")
        representation = untrained(other)
        label_posteriors = np.eye(3, dtype=np.float32)[(np.arange(6) + shift) % 3]
        representation.set_labels(np.arange(6), label_posteriors)
        representation.module.eval()
        representation.begin_stage(0)
        representation.begin_stage(1)
        embeddings_by_shift.append(representation.embed(NODES, training=False).detach())
    moved = (embeddings_by_shift[0] != embeddings_by_shift[1]).any(dim=2).any(dim=1)
    assert moved[:7].all()
    assert moved[11]


def test_settings_of_other_methods_are_refused() -> None:
    method = CertifiedMethod()
    for wrong in ({"decoder": "gru"}, {"aggregator": "gcn", "degree_share": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            method.noise_plan(load_config(None, wrong), SIZES)
