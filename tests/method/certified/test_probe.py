"""What is asked before the first hop, and what is kept of the answer."""

from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.door import ClaimedDoor, Door
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.method.base import Fitted
from vesper.method.certified.feature_projection import Voting, vote_length
from vesper.method.certified.probe import Answer, Audience, Enquiry, Terms
from vesper.method.certified.relay import HandingOn
from vesper.model.feature_scaling import Inputs, Scaling
from vesper.party.representation import NOBODY

NODES, TRAIN, SHARE = 800, 600, 0.6


def of_degrees() -> tuple[Graph, NDArray[np.int64]]:
    """The label is whether a node has many neighbours."""
    rng = np.random.default_rng(2)
    ends = np.repeat(np.arange(NODES), rng.integers(1, 30, NODES))
    edges = np.column_stack([ends, rng.integers(0, NODES, len(ends))])
    graph = Graph.from_edges(NODES, edges[edges[:, 0] != edges[:, 1]])
    return graph, (np.diff(graph.indptr) > 30).astype(np.int64)


def asked(
    door: Door,
    labels: NDArray[np.int64],
    fitted: Fitted,
    *,
    noise_std: float | None = 20.0,
    trial_share: float = 0.1,
    keeps_share: bool = False,
    listeners: NDArray[np.int64] = NOBODY,
) -> Answer | None:
    """What is learned where features tell nothing."""
    features = np.random.default_rng(3).normal(size=(NODES, 3)).astype(np.float32)
    inputs = Inputs(features, Scaling(features))
    enquiry = Enquiry(
        inputs,
        fitted,
        Voting(inputs, fitted, length=vote_length(ordered=False)),
        HandingOn(fitted, hops=1),
        Terms(
            noise_std=noise_std,
            trial_share=trial_share,
            degree_share=SHARE,
            keeps_share=keeps_share,
        ),
    )
    voices = torch.nn.functional.one_hot(torch.from_numpy(labels), 2).float()
    audience = Audience(np.arange(len(labels)), voices, listeners)
    beliefs = partial(torch.full, (NODES, 2), 0.5)
    return enquiry.ask(door, audience, beliefs, next_noise_std=6.0, can_hand_on=True)


def door_to(graph: Graph) -> Door:
    return ClaimedDoor(graph, noise=NoiseSource.for_simulation(0))


def test_a_share_that_was_asked_for_is_kept() -> None:
    graph, labels = of_degrees()
    found, kept = Fitted(), Fitted()
    asked(door_to(graph), labels[:TRAIN], found)
    asked(door_to(graph), labels[:TRAIN], kept, keeps_share=True)
    share = found.find("degree_share")
    assert share is not None
    assert share > SHARE, "the label is the degree"
    assert kept.find("degree_share") is None


def test_what_was_found_stays_whatever_is_asked_again() -> None:
    graph, labels = of_degrees()
    fitted = Fitted()
    asked(door_to(graph), labels[:TRAIN], fitted)
    before = {name: value.copy() for name, value in fitted.arrays().items()}
    asked(door_to(graph), 1 - labels[:TRAIN], fitted, noise_std=1.0)
    assert fitted.arrays().keys() == before.keys()
    assert all(np.array_equal(fitted.arrays()[name], value) for name, value in before.items())


def test_without_a_trial_only_who_listens_is_asked() -> None:
    graph, labels = of_degrees()
    listeners, fitted = np.arange(TRAIN, NODES), Fitted()
    answer = asked(
        door_to(graph), labels[:TRAIN], fitted, trial_share=0.0, noise_std=1.0, listeners=listeners
    )
    assert answer is not None
    assert answer.speak
    assert (answer.found, answer.heard) == (None, None)
    assert list(fitted.arrays()) == ["speak"]


class Shut(ClaimedDoor):
    """A door that nobody may knock at."""

    def release(self, *_: object, **__: object) -> NDArray[np.float32]:
        raise AssertionError("nothing was to be asked")


@pytest.mark.parametrize(
    ("train", "noise_std", "trial_share"),
    [(TRAIN, None, 0.1), (0, 0.0, 0.1), (TRAIN, 0.0, 0.0)],
    ids=["no budget", "no labels", "nobody listens"],
)
def test_nothing_is_asked(train: int, noise_std: float | None, trial_share: float) -> None:
    graph, labels = of_degrees()
    door = Shut(graph, noise=NoiseSource.for_simulation(0))
    fitted = Fitted()
    answer = asked(door, labels[:train], fitted, noise_std=noise_std, trial_share=trial_share)
    assert answer is None
    assert fitted.arrays() == {}
