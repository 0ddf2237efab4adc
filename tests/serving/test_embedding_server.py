"""Queries about the graph of training are free; invalid queries and plans are refused."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from vesper.errors import InputError, RemoteProtocolError
from vesper.graph.labels import open_labels
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.model.evaluation import evaluate
from vesper.protocol.codec import encode
from vesper.protocol.fields import digest_of_ids
from vesper.protocol.messages import EmbeddingQuery, QueryAnswer
from vesper.serving.embedding_server import MAX_ID_LENGTH, MAX_IDS, open_embedding_server

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train

METHODS: list[dict[str, Any]] = [
    {},
    {"hops": 2, "aggregator": "gcn"},
    {"method": "gap", "label_messages": False},
    {"method": "progap", "label_messages": False},
    {"method": "edgerand", "label_messages": False},
    {"method": "mlp"},
]


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_answers_give_the_metric_that_training_measured(
    train: "Train", settings: dict[str, Any]
) -> None:
    finished = train(**settings)
    labels = open_labels(finished.label.party.folder)
    rows = labels.rows("test")
    ids = tuple(map(str, labels.ids.take(rows)))
    before = finished.ledger.read_bytes()
    with finished.open_predictor() as predictor:
        predictions = predictor.predict(ids, limit=None)
    scores = np.log(np.stack([predictions.values[text] for text in ids]))
    result = json.loads((finished.label.party.state / "result" / "result.json").read_text())
    assert evaluate(scores, labels.labels[rows]) == pytest.approx(result["test"], abs=1e-9)
    assert finished.ledger.read_bytes() == before


def test_each_id_is_answered_and_unknown_ids_are_listed(finished: "FinishedRun") -> None:
    ids = ("u07", "nobody", "u03", "u07", "")
    reply = finished.query(ids)
    assert isinstance(reply, QueryAnswer)
    assert reply.unknown == ("nobody", "")
    assert reply.ids_digest == digest_of_ids(ids)
    assert reply.values.shape[0] == 3
    assert np.array_equal(reply.values[0], reply.values[2])
    assert not np.array_equal(reply.values[0], reply.values[1])
    nobody = finished.query(("nobody",))
    assert isinstance(nobody, QueryAnswer)
    assert len(nobody.values) == 0


def test_a_query_without_ids_is_about_the_budget_and_charges_nothing(
    finished: "FinishedRun",
) -> None:
    before = finished.charges()
    trained = finished.query(())
    assert trained.epsilon == 8.0
    assert trained.spent_epsilon == pytest.approx(8.0)
    assert trained.left_epsilon == pytest.approx(0.0, abs=1e-6)
    later = finished.query((), snapshot=finished.snapshot())
    assert later.spent_epsilon == 0.0
    assert later.left_epsilon == pytest.approx(8.0)
    assert finished.charges() == before


def test_a_method_that_reads_no_edge_serves_any_graph_for_free(train: "Train") -> None:
    finished = train(method="mlp")
    before = finished.entries()
    snapshot = finished.snapshot()
    reply = finished.query(("u20", "v1", "u01"), snapshot=snapshot)
    assert isinstance(reply, QueryAnswer)
    assert reply.unknown == ("u01",)
    assert (reply.epsilon, reply.spent_epsilon) == (0.0, 0.0)
    assert finished.entries() == before
    with open_embedding_server(finished.data, snapshot=snapshot) as server:
        name = server.hello.snapshot
    with open_embedding_server(finished.data, snapshot=snapshot) as server:
        assert server.hello.snapshot == name


def test_too_many_and_too_long_ids_are_the_peers_fault(finished: "FinishedRun") -> None:
    for ids in (("u01",) * (MAX_IDS + 1), ("x" * (MAX_ID_LENGTH + 1),)):
        with pytest.raises(RemoteProtocolError, match="limit"):
            finished.query(ids)


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": "inf"}, {"method": "paper-gin", "label_messages": False, "hops": 1}],
    ids=str,
)
def test_plans_that_certify_nothing_are_not_served(
    train: "Train", settings: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="plan"), open_embedding_server(train(**settings).data):
        pass


def test_sizes_of_replies_do_not_depend_on_edges_and_nothing_of_the_ledger_is_sent(
    finished: "FinishedRun",
) -> None:
    ids = ("u20", "v1", "nobody")
    frames: list[bytes] = []
    for name, step in (("one", 7), ("other", 8)):
        with open_embedding_server(
            finished.data,
            snapshot=finished.snapshot(name, step=step),
            graph=f"graph-{name}",
            noise=NoiseSource.for_simulation(5),
        ) as server:
            frames.append(encode(server.hello))
            frames.append(encode(server.reply(EmbeddingQuery(number=1, ids=ids), stage=1)))
    assert list(map(len, frames[:2])) == list(map(len, frames[2:]))
    names = {entry.graph for entry in finished.entries() if entry.graph}
    assert names == {"graph-one", "graph-other", finished.data.party.graph}
    versions = [entry.facts for entry in finished.entries() if entry.facts["kind"] == "version"]
    digests = {facts[key] for facts in versions for key in ("ids", "edges")}
    assert len(digests) == 5  # two tables of nodes, three of edges
    for text in names | digests:
        assert not any(text.encode() in frame for frame in frames)
    for digest in digests:
        assert not any(bytes.fromhex(digest) in frame for frame in frames)
