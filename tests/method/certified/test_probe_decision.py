"""From a probe's release to findings, on a graph whose labels follow a neighbour's feature."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.certified import probe_decision
from vesper.method.certified.probe import (
    NodeRoles,
    ProbeRelease,
    ProbeSettings,
    probe_messages,
)
from vesper.method.certified.probe_decision import ProbeFindings, decide
from vesper.method.certified.probe_size import PartLengths
from vesper.method.certified.query_nodes import LabelReach
from vesper.model.principal_components import ComponentProjection
from vesper.party.representation import NO_NODES, Nodes

Floats = NDArray[np.float32]
NODES, LABELLED = 400, 300


def random_graph() -> tuple[Graph, NDArray[np.int64], Floats]:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, NODES, (3 * NODES, 2))
    rows = rng.normal(size=(NODES, 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    graph = Graph.from_edges(NODES, edges[edges[:, 0] != edges[:, 1]])
    totals = OpenDoor(graph).release(rows[:, :1].copy(), noise_std=0.0)[:, 0]
    return graph, (totals > np.median(totals)).astype(np.int64), rows


class FixedRows(ComponentProjection):
    """Fixed positions along components."""

    def __init__(self, rows: Floats) -> None:
        self._rows = torch.from_numpy(rows)

    @property
    def width(self) -> int:
        return int(self._rows.shape[1])

    def __call__(self, rows: slice) -> torch.Tensor:
        return self._rows[rows]


def release_of(
    graph: Graph,
    posteriors: Floats,
    rows: Floats,
    *,
    query_nodes: Nodes = NO_NODES,
    beliefs: Floats | None = None,
    noise_std: float = 0.0,
) -> ProbeRelease:
    lengths = PartLengths.for_share(0.1)
    messages = probe_messages(
        np.arange(LABELLED),
        torch.from_numpy(posteriors if beliefs is None else beliefs),
        FixedRows(rows),
        lengths=lengths,
    )
    totals = OpenDoor(graph).release(messages, noise_std=0.0)
    noise = np.random.default_rng(5).normal(scale=noise_std, size=totals.shape)
    roles = NodeRoles(
        np.arange(LABELLED), torch.from_numpy(posteriors[:LABELLED].copy()), query_nodes
    )
    return ProbeRelease(
        rows=totals + noise.astype(np.float32),
        roles=roles,
        own_components=rows[:LABELLED],
        lengths=lengths,
        noise_std=noise_std,
    )


def findings_of(release: ProbeRelease, *, ordered: bool = False, **known: Any) -> ProbeFindings:
    settings = ProbeSettings(
        noise_std=release.noise_std, content_share=0.1, degree_share=0.6, ordered=ordered
    )
    return decide(release, settings, next_noise_std=release.noise_std, can_relay=False, **known)


def one_hot(labels: NDArray[np.int64], width: int = 2) -> Floats:
    return np.eye(width, dtype=np.float32)[labels]


def test_an_informative_feature_of_neighbours_is_projected() -> None:
    graph, labels, rows = random_graph()
    content = findings_of(release_of(graph, one_hot(labels), rows)).content
    assert content is not None
    assert content.projection is not None
    assert np.abs(content.projection.numpy()[:, 1]).argmax() == 0


def test_numbers_are_explained_by_their_order_and_not_bin_by_bin() -> None:
    graph, _, rows = random_graph()
    totals = OpenDoor(graph).release(rows[:, :1].copy(), noise_std=0.0)[:, 0]
    numbers = totals + np.random.default_rng(3).normal(size=NODES)
    bins = np.digitize(numbers, np.quantile(numbers, np.arange(1, 8) / 8))
    posteriors = one_hot(bins, 8)
    beliefs = np.full((NODES, 8), 1 / 8, dtype=np.float32)
    beliefs[:LABELLED] = posteriors[:LABELLED]
    release = release_of(graph, posteriors, rows, beliefs=beliefs, noise_std=3.0)
    ordered = findings_of(release, ordered=True).content
    assert ordered is not None
    assert ordered.projection is not None
    coefficients = ordered.projection.numpy()
    assert coefficients.shape == (3, 8), "hops stay as wide as they were"
    assert np.abs(coefficients[:, 0]).argmax() == 0
    assert not coefficients[:, 1:].any()


def test_labels_are_left_out_where_query_nodes_do_not_receive_them() -> None:
    _, labels, rows = random_graph()
    path = Graph.from_edges(NODES, np.column_stack([np.arange(299), np.arange(1, 300)]))
    query_nodes = np.arange(LABELLED, NODES)
    release = release_of(path, one_hot(labels), rows, query_nodes=query_nodes)
    assert findings_of(release_of(path, one_hot(labels), rows)).use_labels
    findings = findings_of(release)
    assert not findings.use_labels
    assert findings.content is None, "the released classes were labels"


def test_an_earlier_decision_about_labels_is_not_replaced() -> None:
    graph, labels, rows = random_graph()
    release = release_of(graph, one_hot(labels), rows)
    assert findings_of(release, use_labels=True).use_labels
    before = findings_of(release, use_labels=False)
    assert (before.use_labels, before.content) == (False, None)


def test_content_is_decided_even_where_label_reach_is_uncertain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, labels, rows = random_graph()
    uncertain = LabelReach(similar=False, lower=False)
    monkeypatch.setattr(probe_decision, "label_reach", lambda *counts, noise_std: uncertain)
    findings = findings_of(
        release_of(graph, one_hot(labels), rows, query_nodes=np.arange(LABELLED, NODES))
    )
    assert not findings.use_labels
    assert findings.content is not None
    assert findings.content.projection is not None


def test_label_reach_alone_does_not_decide_content() -> None:
    graph, labels, rows = random_graph()
    whole = release_of(graph, one_hot(labels), rows, query_nodes=np.arange(LABELLED, NODES))
    counts = OpenDoor(graph).release(
        (np.arange(NODES) < LABELLED).astype(np.float32)[:, None], noise_std=0.0
    )
    release = ProbeRelease(
        rows=counts,
        roles=whole.roles,
        own_components=whole.own_components[:, :0],
        lengths=PartLengths.for_share(0.0),
        noise_std=0.0,
    )
    findings = findings_of(release)
    assert findings.use_labels
    assert findings.content is None
    assert math.isclose(release.lengths.label_reach, 1.0)
