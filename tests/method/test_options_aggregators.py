"""Which methods support which aggregators, and what each requests from the door."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.door import OpenDoor
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.method.base import PublicSizes
from vesper.method.certified.method import CertifiedMethod
from vesper.method.options import (
    AGGREGATORS_OF_METHOD,
    MOVES_OTHERS,
    SUM_AGGREGATORS,
    choose_aggregation,
    refuse_aggregator,
)
from vesper.method.registry import METHODS
from vesper.session.config import load_config

ALL = AGGREGATORS_OF_METHOD["certified"]
GRAPH = Graph.from_edges(12, [(k, (k + 1) % 12) for k in range(12)] + [(0, k) for k in range(2, 8)])
FEATURES = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
SIZES = PublicSizes(num_nodes=12, num_train=6, num_features=4, num_classes=3)

Rows = NDArray[np.float32]


class RequestNotingDoor(OpenDoor):
    """Notes every request."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.requests: list[tuple[Rows, Aggregation]] = []

    def release(
        self, messages: Rows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> Rows:
        self.requests.append((messages.copy(), aggregation))
        return super().release(messages, noise_std=noise_std, aggregation=aggregation)


def run_two_hops(aggregator: str, **settings: Any) -> tuple[RequestNotingDoor, torch.Tensor]:
    """Run two hops without noise; return the door and the final embeddings."""
    given = {"aggregator": aggregator, "epsilon": float("inf"), "hops": 2, "width": 8, **settings}
    door = RequestNotingDoor(GRAPH)
    config = load_config(None, given)
    side = CertifiedMethod().make_representation(
        config,
        SIZES,
        noise_plan=CertifiedMethod().noise_plan(config, SIZES),
        features=FEATURES,
        door=door,
    )
    side.set_labels(np.arange(6), np.eye(3, dtype=np.float32)[np.arange(6) % 3])
    for stage in range(3):
        side.begin_stage(stage)
    side.module.eval()
    return door, side.embed(np.arange(12), training=False).detach()


@pytest.mark.parametrize(
    ("aggregator", "name"),
    [
        ("gin", "sum"),
        ("gcn", "sum"),
        ("mean", "sum"),
        ("gcn-clamped", "clamped gcn"),
        ("gat", "attention"),
        ("max", "maximum"),
    ],
)
def test_each_requests_its_aggregation_with_messages_that_fit(aggregator: str, name: str) -> None:
    door, embedded = run_two_hops(aggregator)
    assert [aggregation.name for _, aggregation in door.requests] == [name] * 2
    moves_others = {aggregation.moves_others for _, aggregation in door.requests}
    assert moves_others == {aggregator in MOVES_OTHERS}
    for messages, _ in door.requests:
        assert np.linalg.norm(messages, axis=1).max() <= 1 + 1e-5
    assert torch.isfinite(embedded).all()


def test_all_embeddings_differ() -> None:
    embedded = [run_two_hops(aggregator)[1][:, :, 1:] for aggregator in ALL]
    for k, one in enumerate(embedded):
        assert not any(torch.allclose(one, other) for other in embedded[:k])


def test_messages_for_a_maximum_are_not_negative() -> None:
    for messages, _ in run_two_hops("max")[0].requests:
        assert messages.min() >= 0
        assert messages[:, 0].max() == 0
        assert np.linalg.norm(messages, axis=1).min() > 0.99


def test_the_clamp_is_a_setting() -> None:
    first, second = (run_two_hops("gcn-clamped", min_degree=m)[1] for m in (1, 9))
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("aggregator", ALL)
def test_methods_with_their_own_aggregator_refuse_others(method: str, aggregator: str) -> None:
    config = load_config(None, {"method": method, "aggregator": aggregator})
    if aggregator in AGGREGATORS_OF_METHOD.get(method, ("gin",)):
        refuse_aggregator(config)
        return
    expected = "'gin' or 'gcn'" if method == "vfgnn" else "only the built-in one"
    with pytest.raises(InputError, match=f"expected {expected} for .* got '{aggregator}'; leave"):
        refuse_aggregator(config)


@pytest.mark.parametrize("aggregator", ALL)
def test_node_privacy_supports_sums_alone(aggregator: str) -> None:
    config = load_config(None, {"aggregator": aggregator, "privacy_unit": "node"})
    if aggregator in SUM_AGGREGATORS:
        refuse_aggregator(config)
        return
    with pytest.raises(InputError, match="'gcn' or 'gin' or 'mean' with privacy_unit 'node'"):
        refuse_aggregator(config)


@pytest.mark.parametrize("aggregator", ["gcn", "mean"])
def test_aggregators_that_need_degrees_need_them_in_messages(aggregator: str) -> None:
    config = load_config(None, {"aggregator": aggregator, "degree_share": 0.0})
    with pytest.raises(InputError, match=f"'{aggregator}' needs degree_share > 0"):
        CertifiedMethod().noise_plan(config, SIZES)


def test_messages_that_cannot_be_rounded_are_refused_before_training() -> None:
    config = load_config(None, {"aggregator": "gcn-clamped"})
    wide = PublicSizes(num_nodes=12, num_train=6, num_features=4, num_classes=4000)
    with pytest.raises(InputError, match="use fewer classes, a smaller min_degree"):
        CertifiedMethod().noise_plan(config, wide)
    high = load_config(None, {"aggregator": "gcn-clamped", "min_degree": 600})
    with pytest.raises(InputError, match="1 <= min_degree < 512"):
        CertifiedMethod().noise_plan(high, SIZES)


@pytest.mark.parametrize("aggregator", ALL)
def test_all_have_the_same_noise_plan_where_only_label_reach_is_probed(aggregator: str) -> None:
    given = {"epsilon": 2.0, "degree_share": 0.3}
    default_plan = CertifiedMethod().noise_plan(load_config(None, given), SIZES)
    config = load_config(None, {**given, "aggregator": aggregator})
    assert CertifiedMethod().noise_plan(config, SIZES) == default_plan


def test_an_aggregator_without_an_aggregation_is_refused() -> None:
    """Never plain sums under another name."""
    logits = torch.zeros(3, 2)
    with pytest.raises(InputError, match="no aggregation has the name 'halves'"):
        choose_aggregation("halves", min_degree=5, logits=logits, centre=logits[0])
