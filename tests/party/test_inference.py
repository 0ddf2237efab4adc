import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.errors import VesperError
from vesper.graph.ids import Ids
from vesper.party.inference import InferenceParty, trained_arrays
from vesper.party.representation import NO_NODES, Nodes, StatelessRepresentation
from vesper.protocol.messages import Roster

FEATURES = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
IDS = Ids(pa.array(["a", "b", "c", "d", "e"], type=pa.large_string()))


class Linear(StatelessRepresentation):
    """One linear map of the features."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.module: nn.Module = nn.Linear(4, 3)
        self.stages: list[int] = []
        self.labels: tuple[Nodes, NDArray[np.float32]] | None = None

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        self.labels = nodes, label_posteriors

    def begin_stage(self, stage: int) -> None:
        assert self.labels is not None
        self.stages.append(stage)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        embeddings: Tensor = self.module(FEATURES[torch.from_numpy(nodes)])[:, :, None]
        return embeddings


def test_a_new_representation_embeds_like_the_trained_one() -> None:
    trained, fresh = Linear(0), Linear(1)
    label_posteriors = np.eye(3, dtype=np.float32)
    roster = Roster(
        train=("gone", "c", "a"), val=("b",), test=(), label_posteriors=label_posteriors
    )
    arrays = trained_arrays(trained)
    party = InferenceParty(fresh, IDS, trained=arrays, roster=roster, stage=1, is_new=True)
    assert fresh.stages == [0, 1]
    assert fresh.labels is not None
    assert fresh.labels[0].tolist() == [2, 0]
    assert np.array_equal(fresh.labels[1], label_posteriors[1:])
    unknown, values = party.embed(("e", "nobody", "a"))
    assert unknown == ("nobody",)
    expected = trained.embed(np.array([4, 0]), training=False).detach().numpy()
    assert np.array_equal(values, expected)
    assert party.embed(())[1].shape == (0, 1, 1)


def test_labels_that_were_not_shared_are_not_set() -> None:
    roster = Roster(
        train=("a",), val=("b",), test=(), label_posteriors=np.zeros((0, 3), dtype=np.float32)
    )
    fresh = Linear(1)
    InferenceParty(
        fresh, IDS, trained=trained_arrays(Linear(0)), roster=roster, stage=0, is_new=True
    )
    assert fresh.labels is not None
    assert len(fresh.labels[0]) == 0


def test_embeddings_that_are_not_finite_are_not_returned() -> None:
    trained = Linear(0)
    with torch.no_grad():
        next(trained.module.parameters()).fill_(float("nan"))
    roster = Roster(train=(), val=(), test=(), label_posteriors=np.zeros((0, 3), dtype=np.float32))
    arrays = trained_arrays(trained)
    party = InferenceParty(Linear(1), IDS, trained=arrays, roster=roster, stage=0, is_new=True)
    with pytest.raises(VesperError, match="finite"):
        party.embed(("a",))


class Wide(StatelessRepresentation):
    """Several layers, which round differently for few rows than for many."""

    def __init__(self, num_nodes: int, *, is_random: bool = False) -> None:
        torch.manual_seed(0)
        self.module: nn.Module = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
        self.is_random, self.requests = is_random, list[Nodes]()
        self._features = torch.randn(num_nodes, 20)

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        pass

    def begin_stage(self, stage: int) -> None:
        pass

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        self.requests.append(nodes)
        embeddings: Tensor = self.module(self._features[torch.from_numpy(nodes)])[:, :, None]
        return embeddings


def party_with(representation: Wide, num_nodes: int) -> InferenceParty:
    ids = Ids(pa.array([str(k) for k in range(num_nodes)], type=pa.large_string()))
    roster = Roster(train=(), val=(), test=(), label_posteriors=np.zeros((0, 3), dtype=np.float32))
    arrays = trained_arrays(representation)
    return InferenceParty(representation, ids, trained=arrays, roster=roster, stage=0, is_new=True)


@pytest.mark.parametrize("batch", [1, 3, 17, 150])
def test_an_embedding_does_not_depend_on_other_nodes_of_the_request(batch: int) -> None:
    party = party_with(Wide(150), 150)
    order = [str(k) for k in np.random.default_rng(0).permutation(150)]
    parts = [tuple(order[k : k + batch]) for k in range(0, 150, batch)]
    embedded = np.concatenate([party.embed(part)[1] for part in parts])
    assert np.array_equal(embedded, party.embed(tuple(order))[1])


def test_only_blocks_of_requested_nodes_are_embedded() -> None:
    wide = Wide(150)
    party_with(wide, 150).embed(("140", "3", "149", "3"))
    assert [(nodes[0], len(nodes)) for nodes in wide.requests] == [(0, 64), (128, 22)]


def test_random_representations_embed_only_the_requested_nodes() -> None:
    wide = Wide(150, is_random=True)
    party_with(wide, 150).embed(("140", "3"))
    assert [nodes.tolist() for nodes in wide.requests] == [[140, 3]]
