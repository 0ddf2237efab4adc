"""One release, and what is made of it: averages are right, and what is asked is within the norm."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.grid import to_grid
from vesper.mechanism.door import OpenDoor
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.method.certified import probe
from vesper.method.certified.label_reach import Polled
from vesper.method.certified.probe import Answer, Asking, trial_messages
from vesper.method.certified.probe_decision import Lengths
from vesper.model.message_rows import messages_of
from vesper.model.principal_components import Along
from vesper.party.representation import NOBODY, Nodes

NODES = 400
Floats = NDArray[np.float32]


def drawn(seed: int = 0) -> tuple[Graph, NDArray[np.int64], Floats]:
    """Edges at random; the label is what most neighbours have as their first feature."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, NODES, (3 * NODES, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    along = rng.normal(size=(NODES, 3)).astype(np.float32)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    graph = Graph.from_edges(NODES, edges)
    sums = OpenDoor(graph).release(along[:, :1].copy(), noise_std=0.0)[:, 0]
    return graph, (sums > np.median(sums)).astype(np.int64), along


def asked(labels: NDArray[np.int64], nodes: Nodes = NOBODY) -> Asking:
    voices = np.eye(2, dtype=np.float32)[labels[:300]]
    return Asking(
        speakers=np.arange(300), voices=voices, asked=nodes, noise_std=0.0, next_noise_std=0.0
    )


def beliefs_of(labels: NDArray[np.int64]) -> torch.Tensor:
    return torch.from_numpy(np.eye(2, dtype=np.float32)[labels])


class Noisy(OpenDoor):
    """With noise, always the same."""

    def release(
        self, messages: Floats, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> Floats:
        sums = super().release(messages, noise_std=0.0, aggregation=aggregation)
        noise = np.random.default_rng(5).normal(scale=noise_std, size=sums.shape)
        return sums + noise.astype(np.float32)


class Given(Along):
    """Rows as they are given."""

    def __init__(self, rows: Floats) -> None:
        self._rows = torch.from_numpy(rows)

    @property
    def width(self) -> int:
        return int(self._rows.shape[1])

    def __call__(self, rows: slice) -> torch.Tensor:
        return self._rows[rows]


def messages_for(labels: NDArray[np.int64], along: Floats) -> Floats:
    return trial_messages(np.arange(300), beliefs_of(labels), Given(along), lengths=Lengths.of(0.1))


def tried(labels: NDArray[np.int64], graph: Graph, along: Floats) -> Answer:
    messages = messages_for(labels, along)
    return asked(labels).trial(OpenDoor(graph), lambda: messages, share=0.1, degree_share=0.6)


def test_messages_have_all_parts_and_fit_the_grid() -> None:
    _, labels, along = drawn()
    messages, lengths = messages_for(labels, along), Lengths.of(0.1)
    assert messages.shape == (NODES, 2 + 2 + 3)
    assert np.linalg.norm(messages, axis=1)[:300] == pytest.approx(1, abs=1e-6)
    assert (messages[:300, 0] == np.float32(lengths.poll)).all()
    assert not messages[300:, 0].any()
    to_grid(messages)


def test_features_of_neighbours_are_found() -> None:
    graph, labels, along = drawn()
    answer = tried(labels, graph, along)
    assert answer.found is not None
    assert answer.found.votes is not None
    assert np.abs(answer.found.votes[:, 1]).argmax() == 0


def test_numbers_are_explained_as_numbers_and_not_bin_by_bin() -> None:
    graph, _, along = drawn()
    sums = OpenDoor(graph).release(along[:, :1].copy(), noise_std=0.0)[:, 0]
    own = np.random.default_rng(3).normal(size=NODES)
    bins = np.digitize(sums + own, np.quantile(sums + own, np.arange(1, 8) / 8))
    voices = np.eye(8, dtype=np.float32)[bins]
    nobody_knows = torch.from_numpy(np.full((NODES, 8), 1 / 8, dtype=np.float32))
    nobody_knows[:300] = torch.from_numpy(voices[:300])

    def found(*, ordered: bool) -> NDArray[np.float64] | None:
        asks = Asking(
            speakers=np.arange(300),
            voices=voices[:300],
            asked=NOBODY,
            noise_std=3.0,
            next_noise_std=3.0,
            ordered=ordered,
        )
        lengths = Lengths.of(0.1)
        said = trial_messages(np.arange(300), nobody_knows, Given(along), lengths=lengths)
        answer = asks.trial(Noisy(graph), lambda: said, share=0.1, degree_share=0.6)
        assert answer.found is not None
        return answer.found.votes

    assert found(ordered=False) is None, "eight bins, each hardly explained"
    votes = found(ordered=True)
    assert votes is not None
    assert votes.shape == (3, 8), "hops stay as wide as they were"
    assert np.abs(votes[:, 0]).argmax() == 0
    assert not votes[:, 1:].any()


def test_where_classes_tell_what_was_heard_of_them_is_kept() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, NODES)
    alike = np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)
    edges = np.concatenate([rng.choice(each, (600, 2)) for each in alike])
    graph = Graph.from_edges(NODES, edges[edges[:, 0] != edges[:, 1]])
    along = (rng.normal(size=(NODES, 3)) / 4).astype(np.float32)
    answer = tried(labels, graph, along)
    assert answer.found is not None
    assert answer.found.votes is None
    assert answer.heard is not None
    said = messages_of(beliefs_of(labels), degree_share=0.6).numpy()
    exact = OpenDoor(graph).release(said, noise_std=0.0)
    back = answer.heard.sums.numpy() * np.array([0.6, 0.8, 0.8], dtype=np.float32)
    degrees = np.diff(graph.indptr)[:, None]
    assert (np.abs(back - exact) <= degrees * 0.1).all(), "but for what rounding to the grid takes"


def test_without_anyone_to_be_asked_for_labels_are_said() -> None:
    graph, labels, along = drawn()
    assert tried(labels, graph, along).speak
    alone = Graph.from_edges(NODES, np.column_stack([np.arange(299), np.arange(1, 300)]))
    lonely = asked(labels, np.arange(300, NODES))
    assert not lonely.poll(OpenDoor(alone), num_nodes=NODES).speak
    messages = messages_for(labels, along)
    answer = lonely.trial(OpenDoor(alone), lambda: messages, share=0.1, degree_share=0.6)
    assert not answer.speak
    assert answer.found is None, "labels were said in it, and nobody will say them"
    assert answer.heard is None


def test_where_the_poll_cannot_tell_no_label_is_said_and_the_rest_is_concluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, labels, along = drawn()
    monkeypatch.setattr(
        probe, "judged", lambda ours, theirs, noise_std: Polled(alike=False, apart=False)
    )
    messages = messages_for(labels, along)
    answer = asked(labels, np.arange(300, NODES)).trial(
        OpenDoor(graph), lambda: messages, share=0.1, degree_share=0.6
    )
    assert not answer.speak
    assert answer.found is not None
    assert answer.found.votes is not None, "what features vote for is as true as it was"
    assert answer.heard is None, "classes in it were labels"


def test_a_release_of_another_width_is_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, labels, along = drawn()
    wider = messages_for(labels, (np.column_stack([along, along]) / 2).astype(np.float32))

    door = OpenDoor(graph)
    monkeypatch.setattr(door, "release", lambda messages, noise_std: wider)
    with pytest.raises(VesperError, match="earlier version; begin a new run"):
        asked(labels).trial(door, lambda: messages_for(labels, along), share=0.1, degree_share=0.6)
