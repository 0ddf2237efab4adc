"""GAP and ProGAP at the data party, with a door that notes every request."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.method.base import Method, PublicSizes
from vesper.method.baselines.hop_releases import GapMethod, ProgapMethod
from vesper.method.registry import METHODS
from vesper.method.settings import Config, PrivacySettings, RunSettings
from vesper.party.representation import Representation

NODES = 50
SIZES = PublicSizes(num_nodes=NODES, num_train=30, num_features=4, num_classes=3)
FEATURES = np.random.default_rng(0).normal(size=(NODES, 4)).astype(np.float32)
Rows = NDArray[np.float32]


class RequestNotingDoor:
    """Returns a fixed rotation of the messages."""

    def __init__(self) -> None:
        self.requests: list[tuple[Rows, float]] = []

    def release(
        self, messages: Rows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> Rows:
        self.requests.append((messages.copy(), noise_std))
        return 3 * np.roll(messages, 1, axis=0)

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        raise AssertionError("not for these methods")

    def spending_summary(self) -> str:
        return ""

    def uncertified_graph(self) -> Graph:
        raise AssertionError("a certified method requests the graph")


def config(hops: int | None) -> Config:
    return Config(privacy=PrivacySettings(hops=hops), run=RunSettings(width=8, message_width=5))


def sides(method: Method, hops: int | None) -> tuple[Representation, RequestNotingDoor]:
    door = RequestNotingDoor()
    return method.make_representation(
        config(hops),
        SIZES,
        noise_plan=method.noise_plan(config(hops), SIZES),
        features=FEATURES,
        door=door,
    ), door


@pytest.mark.parametrize("method", [GapMethod(), ProgapMethod()], ids=["gap", "progap"])
@pytest.mark.parametrize("hops", [None, 1, 3])
def test_one_release_of_unit_messages_per_hop(method: Method, hops: int | None) -> None:
    data_side, door = sides(method, hops)
    decoder = method.make_decoder(config(hops), SIZES)
    expected = hops or 2
    for stage in range(method.stages(config(hops), SIZES)):
        data_side.begin_stage(stage)
        data_side.module.train()
        embeddings = data_side.embed(np.arange(10), training=True)
        assert embeddings.shape == (10, 5, expected + 1)
        scores = decoder.decode(embeddings, stage)
        assert scores.shape == (10, 3)
        torch.autograd.backward([scores.sum()])
        assert len(door.requests) == (
            0 if stage == 0 else expected if method.name == "gap" else stage
        )
    planned = method.noise_plan(config(hops), SIZES).noise_stds
    assert tuple(noise_std for _, noise_std in door.requests) == planned
    for messages, _ in door.requests:
        assert np.linalg.norm(messages, axis=1) == pytest.approx(np.ones(NODES), abs=1e-5)


def test_gap_sums_the_hop_before() -> None:
    data_side, door = sides(GapMethod(), 2)
    data_side.begin_stage(0)
    data_side.begin_stage(1)
    assert door.requests[1][0] == pytest.approx(np.roll(door.requests[0][0], 1, axis=0), abs=1e-6)


def test_progap_freezes_what_came_before() -> None:
    data_side, _ = sides(ProgapMethod(), 2)
    data_side.begin_stage(0)
    data_side.begin_stage(1)
    data_side.module.train()
    embeddings = data_side.embed(np.arange(10), training=True)
    first = embeddings[:, :, 0].detach().clone()
    torch.autograd.backward([embeddings.sum()])
    with_gradient = {n for n, p in data_side.module.named_parameters() if p.grad is not None}
    assert with_gradient
    assert all(name.startswith("bases.0.") for name in with_gradient)
    assert torch.equal(data_side.embed(np.arange(10), training=True)[:, :, 0], first)


def test_both_are_known_by_name() -> None:
    assert {"gap", "progap", "edgerand", "lapgraph"} <= set(METHODS)


@pytest.mark.parametrize("method", [GapMethod(), ProgapMethod()], ids=["gap", "progap"])
def test_sequence_encoders_are_refused(method: Method) -> None:
    run = RunSettings(method=method.name, encoder="gru", steps=2)
    with pytest.raises(InputError, match=f"encoder: expected 'mlp' for {method.name}, .*got 'gru'"):
        method.noise_plan(Config(run=run), SIZES)
