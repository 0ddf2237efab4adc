import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.errors import VesperError
from vesper.graph.ids import Ids
from vesper.party.answering_party import AnsweringParty, arrays_of_trained
from vesper.party.representation import NOBODY, Forgetful, Nodes
from vesper.protocol.messages import Roster

FEATURES = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
IDS = Ids(pa.array(["a", "b", "c", "d", "e"], type=pa.large_string()))


class Linear(Forgetful):
    """One linear map of the features."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.module: nn.Module = nn.Linear(4, 3)
        self.stages: list[int] = []
        self.heard: tuple[Nodes, NDArray[np.float32]] | None = None

    def hear(self, nodes: Nodes, voices: NDArray[np.float32], asked: Nodes = NOBODY) -> None:
        self.heard = nodes, voices

    def begin_stage(self, stage: int) -> None:
        assert self.heard is not None
        self.stages.append(stage)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        embeddings: Tensor = self.module(FEATURES[torch.from_numpy(nodes)])[:, :, None]
        return embeddings


def test_a_fresh_representation_answers_as_the_trained_one() -> None:
    trained, fresh = Linear(0), Linear(1)
    voices = np.eye(3, dtype=np.float32)
    roster = Roster(train=("gone", "c", "a"), val=("b",), test=(), voices=voices)
    arrays = arrays_of_trained(trained)
    party = AnsweringParty(fresh, IDS, trained=arrays, roster=roster, stage=1, is_new=True)
    assert fresh.stages == [0, 1]
    assert fresh.heard is not None
    assert fresh.heard[0].tolist() == [2, 0]
    assert np.array_equal(fresh.heard[1], voices[1:])
    unknown, values = party.embed(("e", "nobody", "a"))
    assert unknown == ("nobody",)
    expected = trained.embed(np.array([4, 0]), training=False).detach().numpy()
    assert np.array_equal(values, expected)
    assert party.embed(())[1].shape == (0, 1, 1)


def test_labels_that_stayed_are_not_heard() -> None:
    roster = Roster(train=("a",), val=("b",), test=(), voices=np.zeros((0, 3), dtype=np.float32))
    fresh = Linear(1)
    AnsweringParty(
        fresh, IDS, trained=arrays_of_trained(Linear(0)), roster=roster, stage=0, is_new=True
    )
    assert fresh.heard is not None
    assert len(fresh.heard[0]) == 0


def test_embeddings_that_are_no_numbers_do_not_leave() -> None:
    trained = Linear(0)
    with torch.no_grad():
        next(trained.module.parameters()).fill_(float("nan"))
    roster = Roster(train=(), val=(), test=(), voices=np.zeros((0, 3), dtype=np.float32))
    arrays = arrays_of_trained(trained)
    party = AnsweringParty(Linear(1), IDS, trained=arrays, roster=roster, stage=0, is_new=True)
    with pytest.raises(VesperError, match="finite"):
        party.embed(("a",))
