"""Gradients and label posteriors are recorded, and nothing else changes."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.party.representation import NO_NODES, Nodes, StatelessRepresentation
from vesper.simulation.recording import FeedbackRecordingRepresentation


class Table(StatelessRepresentation):
    """Embeddings that are weights."""

    def __init__(self) -> None:
        self.weights = nn.Embedding(5, 2)
        self.labelled_nodes: list[Nodes] = []

    @property
    def module(self) -> nn.Module:
        return self.weights

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        self.labelled_nodes.append(nodes)

    def begin_stage(self, stage: int) -> None:
        self.stage = stage

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        rows: Tensor = self.weights(torch.from_numpy(nodes))
        return rows[:, :, None].expand(-1, -1, 3)


def test_gradients_are_summed_by_node() -> None:
    recording = FeedbackRecordingRepresentation(Table(), num_nodes=5)
    assert recording.gradients() is None
    expected = np.zeros((5, 2))
    for step, nodes in enumerate((np.array([0, 3]), np.array([3, 4]))):
        embeddings = recording.embed(nodes, training=True)
        gradient = torch.full((2, 2, 3), step + 1.0)
        torch.autograd.backward([embeddings], [gradient])
        expected[nodes] += 3 * (step + 1.0)
    with torch.no_grad():
        recording.embed(np.array([1]), training=False)
    gradients = recording.gradients()
    assert gradients is not None
    assert np.array_equal(gradients, expected)


def test_label_posteriors_are_recorded() -> None:
    recording = FeedbackRecordingRepresentation(Table(), num_nodes=5)
    label_posteriors = np.eye(2, dtype=np.float32)
    recording.set_labels(np.array([1, 2]), label_posteriors)
    assert recording.label_posteriors is not None
    assert np.array_equal(recording.label_posteriors, label_posteriors)
    assert recording.labelled_nodes.tolist() == [1, 2]
