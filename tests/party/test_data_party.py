from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.errors import RemoteProtocolError, VesperError
from vesper.party.data_party import DataParty
from vesper.party.representation import NO_NODES, Nodes, StatelessRepresentation
from vesper.protocol.fields import digest_of_roots
from vesper.protocol.messages import Gradients, Purpose

FEATURES = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))


class Linear(StatelessRepresentation):
    """The smallest representation: one linear map of the features."""

    def __init__(self) -> None:
        self.linear = nn.Linear(4, 3)
        self.stages: list[int] = []
        self.labels: tuple[Nodes, NDArray[np.float32]] | None = None

    @property
    def module(self) -> nn.Module:
        return self.linear

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        self.labels = nodes, label_posteriors

    def begin_stage(self, stage: int) -> None:
        self.stages.append(stage)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        assert self.linear.training == training
        embeddings: Tensor = self.linear(FEATURES[torch.from_numpy(nodes)])[:, :, None]
        return embeddings


def party(local_updates: int = 1) -> tuple[DataParty, Linear]:
    torch.manual_seed(0)
    representation = Linear()
    made = DataParty(
        representation, learning_rate=0.01, weight_decay=0.0, local_updates=local_updates
    )
    made.receive_roster(np.arange(12), np.zeros((0, 3), dtype=np.float32), num_nodes=12)
    made.begin_stage(0)
    return made, representation


def test_roots_are_rows_of_the_roster_and_training_nodes_are_its_first() -> None:
    made, representation = party()
    all_embeddings = made.embed_batch(np.arange(12), purpose=Purpose.EVALUATE).values
    label_posteriors = np.eye(3, dtype=np.float32)[:2]
    made.receive_roster(np.array([7, 2, 5]), label_posteriors, num_nodes=12)
    sent = made.embed_batch(np.array([2, 0]), purpose=Purpose.EVALUATE)
    assert np.allclose(sent.values, all_embeddings[[5, 7]], atol=1e-6)
    assert sent.roots_digest == digest_of_roots(np.array([2, 0]))
    assert representation.labels is not None
    assert representation.labels[0].tolist() == [7, 2]
    assert representation.labels[1] is label_posteriors


def test_learning_changes_weights_and_restoring_undoes_it() -> None:
    made, _ = party()
    roots = np.array([0, 1, 2])
    sent = made.embed_batch(roots, purpose=Purpose.TRAIN)
    made.learn(Gradients(step=sent.step, values=np.ones_like(sent.values)))
    changed = made.embed_batch(roots, purpose=Purpose.EVALUATE).values
    assert not np.array_equal(changed, sent.values)
    made.restore_best()
    assert np.array_equal(made.embed_batch(roots, purpose=Purpose.EVALUATE).values, sent.values)


def test_gradients_are_accepted_once_for_the_embeddings_sent_last() -> None:
    made, _ = party()
    sent = made.embed_batch(np.array([0]), purpose=Purpose.EVALUATE)
    with pytest.raises(RemoteProtocolError, match="match no pending embeddings"):
        made.learn(Gradients(step=sent.step, values=sent.values))
    sent = made.embed_batch(np.array([0]), purpose=Purpose.TRAIN)
    with pytest.raises(RemoteProtocolError, match="match no pending embeddings"):
        made.learn(Gradients(step=sent.step - 1, values=sent.values))
    with pytest.raises(RemoteProtocolError, match=r"expected gradients of shape \(1, 3, 1\)"):
        made.learn(Gradients(step=sent.step, values=sent.values[:, :2]))
    made.learn(Gradients(step=sent.step, values=sent.values))
    with pytest.raises(RemoteProtocolError, match="match no pending embeddings"):
        made.learn(Gradients(step=sent.step, values=sent.values))


def test_divergence_is_an_error_of_this_side() -> None:
    made, representation = party()
    with torch.no_grad():
        representation.linear.weight.fill_(float("nan"))
    with pytest.raises(VesperError, match="lower learning_rate") as caught:
        made.embed_batch(np.array([0]), purpose=Purpose.TRAIN)
    assert caught.value.exit_code == 1


def test_local_updates_embed_the_same_roots_again_with_the_same_gradients() -> None:
    roots = np.array([3, 1, 2])
    made, representation = party(local_updates=3)
    sent = made.embed_batch(roots, purpose=Purpose.TRAIN)
    received = np.random.default_rng(0).normal(size=sent.values.shape).astype(np.float32)
    made.learn(Gradients(step=sent.step, values=received))

    _, alone = party()
    optimizer = torch.optim.Adam(alone.linear.parameters(), lr=0.01, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        torch.autograd.backward([alone.embed(roots, training=True)], [torch.from_numpy(received)])
        optimizer.step()
    assert torch.equal(representation.linear.weight, alone.linear.weight)
    assert made.embed_batch(roots, purpose=Purpose.EVALUATE).step == sent.step + 1


def test_fitted_constants_are_loaded_and_not_fitted_again() -> None:
    class Fitting(Linear):
        """Fits a value of its graph, once."""

        def __init__(self, graph_value: float) -> None:
            super().__init__()
            self.graph_value, self.value = graph_value, float("nan")

        def begin_stage(self, stage: int) -> None:
            super().begin_stage(stage)
            self.value = self.graph_value if np.isnan(self.value) else self.value

        def fitted_arrays(self) -> dict[str, NDArray[Any]]:
            return {"value": np.array(self.value)}

        def load_fitted(self, fitted_arrays: dict[str, NDArray[Any]]) -> None:
            self.value = float(fitted_arrays["value"])

    def party_on(graph_value: float) -> tuple[DataParty, Fitting]:
        representation = Fitting(graph_value)
        return DataParty(representation, learning_rate=0.01, weight_decay=0.0), representation

    before, _ = party_on(graph_value=1.0)
    before.begin_stage(0)
    before.begin_stage(1)
    after, representation = party_on(graph_value=2.0)
    after.load_state_arrays(before.state_arrays(), stage=1)
    assert representation.value == 1.0
    assert representation.stages == [0, 1]
