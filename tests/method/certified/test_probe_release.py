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
from vesper.method.certified.label_reach import LabelReach
from vesper.method.certified.probe import Probe, ProbeFindings, probe_messages
from vesper.method.certified.probe_decision import PartLengths
from vesper.model.message_rows import class_messages
from vesper.model.principal_components import ComponentProjection
from vesper.party.representation import NO_NODES, Nodes

NODES = 400
Floats = NDArray[np.float32]


def drawn(seed: int = 0) -> tuple[Graph, NDArray[np.int64], Floats]:
    """Edges at random; the label is what most neighbours have as their first feature."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, NODES, (3 * NODES, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    projection = rng.normal(size=(NODES, 3)).astype(np.float32)
    projection /= np.linalg.norm(projection, axis=1, keepdims=True)
    graph = Graph.from_edges(NODES, edges)
    sums = OpenDoor(graph).release(projection[:, :1].copy(), noise_std=0.0)[:, 0]
    return graph, (sums > np.median(sums)).astype(np.int64), projection


def asked(labels: NDArray[np.int64], nodes: Nodes = NO_NODES) -> Probe:
    label_posteriors = np.eye(2, dtype=np.float32)[labels[:300]]
    return Probe(
        labelled_nodes=np.arange(300),
        label_posteriors=label_posteriors,
        query_nodes=nodes,
        noise_std=0.0,
        next_noise_std=0.0,
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


class FixedInputs(ComponentProjection):
    """Rows as they are given."""

    def __init__(self, rows: Floats) -> None:
        self._rows = torch.from_numpy(rows)

    @property
    def width(self) -> int:
        return int(self._rows.shape[1])

    def __call__(self, rows: slice) -> torch.Tensor:
        return self._rows[rows]


def messages_for(labels: NDArray[np.int64], projection: Floats) -> Floats:
    return probe_messages(
        np.arange(300),
        beliefs_of(labels),
        FixedInputs(projection),
        lengths=PartLengths.for_share(0.1),
    )


def tried(labels: NDArray[np.int64], graph: Graph, projection: Floats) -> ProbeFindings:
    messages = messages_for(labels, projection)
    return asked(labels).run(OpenDoor(graph), lambda: messages, share=0.1, degree_share=0.6)


def test_messages_have_all_parts_and_fit_the_grid() -> None:
    _, labels, projection = drawn()
    messages, lengths = messages_for(labels, projection), PartLengths.for_share(0.1)
    assert messages.shape == (NODES, 2 + 2 + 3)
    assert np.linalg.norm(messages, axis=1)[:300] == pytest.approx(1, abs=1e-6)
    assert (messages[:300, 0] == np.float32(lengths.label_reach)).all()
    assert not messages[300:, 0].any()
    to_grid(messages)


def test_features_of_neighbours_are_found() -> None:
    graph, labels, projection = drawn()
    findings = tried(labels, graph, projection)
    assert findings.decision is not None
    assert findings.decision.projection is not None
    assert np.abs(findings.decision.projection[:, 1]).argmax() == 0


def test_numbers_are_explained_as_numbers_and_not_bin_by_bin() -> None:
    graph, _, projection = drawn()
    sums = OpenDoor(graph).release(projection[:, :1].copy(), noise_std=0.0)[:, 0]
    own = np.random.default_rng(3).normal(size=NODES)
    bins = np.digitize(sums + own, np.quantile(sums + own, np.arange(1, 8) / 8))
    label_posteriors = np.eye(8, dtype=np.float32)[bins]
    nobody_knows = torch.from_numpy(np.full((NODES, 8), 1 / 8, dtype=np.float32))
    nobody_knows[:300] = torch.from_numpy(label_posteriors[:300])

    def found(*, ordered: bool) -> NDArray[np.float64] | None:
        asks = Probe(
            labelled_nodes=np.arange(300),
            label_posteriors=label_posteriors[:300],
            query_nodes=NO_NODES,
            noise_std=3.0,
            next_noise_std=3.0,
            ordered=ordered,
        )
        lengths = PartLengths.for_share(0.1)
        said = probe_messages(
            np.arange(300), nobody_knows, FixedInputs(projection), lengths=lengths
        )
        findings = asks.run(Noisy(graph), lambda: said, share=0.1, degree_share=0.6)
        assert findings.decision is not None
        return findings.decision.projection

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
    projection = (rng.normal(size=(NODES, 3)) / 4).astype(np.float32)
    findings = tried(labels, graph, projection)
    assert findings.decision is not None
    assert findings.decision.projection is None
    assert findings.sums is not None
    said = class_messages(beliefs_of(labels), degree_share=0.6).numpy()
    exact = OpenDoor(graph).release(said, noise_std=0.0)
    back = findings.sums.sums.numpy() * np.array([0.6, 0.8, 0.8], dtype=np.float32)
    degrees = np.diff(graph.indptr)[:, None]
    assert (np.abs(back - exact) <= degrees * 0.1).all(), "but for what rounding to the grid takes"


def test_without_anyone_to_be_asked_for_labels_are_said() -> None:
    graph, labels, projection = drawn()
    assert tried(labels, graph, projection).use_labels
    alone = Graph.from_edges(NODES, np.column_stack([np.arange(299), np.arange(1, 300)]))
    lonely = asked(labels, np.arange(300, NODES))
    assert not lonely.run_label_reach(OpenDoor(alone), num_nodes=NODES).use_labels
    messages = messages_for(labels, projection)
    findings = lonely.run(OpenDoor(alone), lambda: messages, share=0.1, degree_share=0.6)
    assert not findings.use_labels
    assert findings.decision is None, "labels were said in it, and nobody will say them"
    assert findings.sums is None


def test_where_the_poll_cannot_tell_no_label_is_said_and_the_rest_is_concluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, labels, projection = drawn()
    monkeypatch.setattr(
        probe, "label_reach", lambda ours, theirs, noise_std: LabelReach(similar=False, lower=False)
    )
    messages = messages_for(labels, projection)
    findings = asked(labels, np.arange(300, NODES)).run(
        OpenDoor(graph), lambda: messages, share=0.1, degree_share=0.6
    )
    assert not findings.use_labels
    assert findings.decision is not None
    assert findings.decision.projection is not None, "what features vote for is as true as it was"
    assert findings.sums is None, "classes in it were labels"


def test_a_release_of_another_width_is_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, labels, projection = drawn()
    wider = messages_for(labels, (np.column_stack([projection, projection]) / 2).astype(np.float32))

    door = OpenDoor(graph)
    monkeypatch.setattr(door, "release", lambda messages, noise_std: wider)
    with pytest.raises(VesperError, match="earlier version; start a new run"):
        asked(labels).run(
            door, lambda: messages_for(labels, projection), share=0.1, degree_share=0.6
        )
