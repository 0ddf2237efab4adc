"""Answers about the graph of training are free; a snapshot is charged once; noise is drawn once."""

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError, RemoteProtocolError, VesperError
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.method.progressive import ProgressiveRepresentation
from vesper.model.metric import evaluate
from vesper.privacy.account import open_account
from vesper.privacy.events import PureRelease
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.privacy.ledger_file import open_to_read
from vesper.privacy.ledger_reader import Entry
from vesper.protocol.codec import encode
from vesper.protocol.digest import digest_of_ids
from vesper.protocol.messages import Answer, Query, Refusal
from vesper.run.config import load_config
from vesper.run.hand_off.write import hand_off
from vesper.run.serving.answering import LONGEST_ID, MOST_IDS, open_answerer
from vesper.run.serving.kept_run import read_asking

if TYPE_CHECKING:
    from tests.run.serving.conftest import Finished, Train

METHODS: list[dict[str, Any]] = [
    {},
    {"hops": 2, "aggregator": "gcn"},
    {"method": "gap", "label_messages": False},
    {"method": "progap", "label_messages": False},
    {"method": "edgerand", "label_messages": False},
    {"method": "mlp"},
]


def entries(ledger: Path) -> list[Entry]:
    reader = open_to_read(ledger)
    found = list(reader.entries())
    reader.close()
    return found


def charges(ledger: Path) -> int:
    return sum(entry.cost > 0 for entry in entries(ledger))


def answered(
    finished: "Finished",
    ids: tuple[str, ...],
    *,
    snapshot: Path | None = None,
    seed: int = 5,
    stage: int | None = None,
) -> Answer | Refusal:
    """Start an answerer, ask it once, and let it go."""
    noise = NoiseSource.for_simulation(seed)
    stage = read_asking(finished.label).stage if stage is None else stage
    with open_answerer(finished.data, snapshot=snapshot, noise=noise) as answerer:
        return answerer.reply(Query(number=1, ids=ids), stage=stage)


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_answers_give_the_metric_that_training_measured(
    train: "Train", settings: dict[str, Any]
) -> None:
    finished = train(**settings)
    labels = open_labels(finished.label.party.folder)
    rows = labels.rows("test")
    ids = tuple(map(str, labels.ids.take(rows)))
    before = finished.ledger.read_bytes()
    with finished.asked() as predictor:
        found = predictor.predict(ids, limit=None)
    scores = np.log(np.stack([found.values[text] for text in ids]))
    result = json.loads((finished.label.party.state / "result" / "result.json").read_text())
    assert evaluate(scores, labels.labels[rows]) == pytest.approx(result["test"], abs=1e-9)
    assert finished.ledger.read_bytes() == before


def test_ids_are_answered_one_by_one_and_unknown_ones_named(finished: "Finished") -> None:
    ids = ("u07", "nobody", "u03", "u07", "")
    reply = answered(finished, ids)
    assert isinstance(reply, Answer)
    assert reply.unknown == ("nobody", "")
    assert reply.ids_digest == digest_of_ids(ids)
    assert reply.values.shape[0] == 3
    assert np.array_equal(reply.values[0], reply.values[2])
    assert not np.array_equal(reply.values[0], reply.values[1])
    nobody = answered(finished, ("nobody",))
    assert isinstance(nobody, Answer)
    assert len(nobody.values) == 0


def test_a_query_without_ids_is_about_the_budget_and_charges_nothing(finished: "Finished") -> None:
    before = charges(finished.ledger)
    trained = answered(finished, ())
    assert trained.epsilon == 8.0
    assert trained.spent_epsilon == pytest.approx(8.0)
    assert trained.left_epsilon == pytest.approx(0.0, abs=1e-6)
    later = answered(finished, (), snapshot=finished.snapshot())
    assert later.spent_epsilon == 0.0
    assert later.left_epsilon == pytest.approx(8.0)
    assert charges(finished.ledger) == before


@pytest.mark.parametrize("settings", METHODS[:-1], ids=str)
def test_a_snapshot_is_charged_once_and_its_noise_drawn_once(
    train: "Train", settings: dict[str, Any]
) -> None:
    finished = train(**settings)
    snapshot, before = finished.snapshot(), charges(finished.ledger)
    stages = {"edgerand": 1, "gap": 2, "progap": 3}.get(settings.get("method", ""), 3)
    first = answered(finished, ("u20", "v1"), snapshot=snapshot, seed=5, stage=stages - 1)
    charged = charges(finished.ledger) - before
    assert charged == (1 if stages == 1 else 2)
    assert isinstance(first, Answer)
    assert first.unknown == ()
    written = finished.ledger.read_bytes()
    for seed in (6, 7):  # killed and started again, with other noise at hand
        again = answered(finished, ("u20", "v1"), snapshot=snapshot, seed=seed, stage=stages - 1)
        assert isinstance(again, Answer)
        assert np.array_equal(again.values, first.values)
    assert finished.ledger.read_bytes() == written
    assert first.spent_epsilon == pytest.approx(8.0)


def test_a_snapshot_pays_only_for_the_hops_of_the_stage_that_is_asked_for(
    finished: "Finished",
) -> None:
    snapshot, before = finished.snapshot(), charges(finished.ledger)
    for stage, charged in ((0, 0), (1, 1), (0, 1), (2, 2), (1, 2)):
        reply = answered(finished, ("v0",), snapshot=snapshot, stage=stage)
        assert isinstance(reply, Answer)
        assert charges(finished.ledger) - before == charged


def test_a_crash_between_charge_and_release_costs_nothing_again(
    finished: "Finished", monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, before = finished.snapshot(), charges(finished.ledger)

    def full(*_: object) -> None:
        raise VesperError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr("vesper.mechanism.vault.Vault.put", full)
        with pytest.raises(VesperError, match="disk full"):
            answered(finished, ("v0",), snapshot=snapshot, stage=1)
    assert charges(finished.ledger) == before + 1
    assert isinstance(answered(finished, ("v0",), snapshot=snapshot, stage=1), Answer)
    assert charges(finished.ledger) == before + 1


def test_a_method_that_reads_no_edge_answers_about_anything_for_nothing(train: "Train") -> None:
    finished = train(method="mlp")
    before = entries(finished.ledger)
    snapshot = finished.snapshot()
    reply = answered(finished, ("u20", "v1", "u01"), snapshot=snapshot)
    assert isinstance(reply, Answer)
    assert reply.unknown == ("u01",)
    assert (reply.epsilon, reply.spent_epsilon) == (0.0, 0.0)
    assert entries(finished.ledger) == before
    with open_answerer(finished.data, snapshot=snapshot) as answerer:
        name = answerer.hello.snapshot
    with open_answerer(finished.data, snapshot=snapshot) as answerer:
        assert answerer.hello.snapshot == name


def test_what_is_spent_elsewhere_ends_in_a_refusal_with_what_is_left(finished: "Finished") -> None:
    snapshot = finished.snapshot()
    settings = load_config(None, {"epsilon": 8.0, "hops": 1})
    out = finished.root / "released.parquet"
    hand_off(snapshot, settings, out, ledger=finished.ledger)
    before = entries(finished.ledger)
    for _ in range(2):
        reply = answered(finished, ("u20",), snapshot=snapshot)
        assert isinstance(reply, Refusal)
        assert "does not allow" in reply.reason
        assert reply.spent_epsilon == pytest.approx(8.0)
        assert reply.left_epsilon == pytest.approx(0.0, abs=1e-6)
        assert entries(finished.ledger) == before


def test_another_budget_of_the_snapshot_is_for_the_data_party_to_set_right(
    finished: "Finished",
) -> None:
    snapshot = finished.snapshot()
    settings = load_config(None, {"epsilon": 1.0, "hops": 1})
    hand_off(snapshot, settings, finished.root / "released.parquet", ledger=finished.ledger)
    with pytest.raises(InputError, match="epsilon 1"):
        answered(finished, ("u20",), snapshot=snapshot)


def test_features_are_scaled_as_in_training(finished: "Finished") -> None:
    """One node alone in a snapshot, stage 0: refitted scales would make its features zero."""
    trained = answered(finished, ("u12",), stage=0)
    folder = finished.root / "alone"
    folder.mkdir()
    table = pq.read_table(finished.data.party.folder / "nodes.parquet")
    pq.write_table(table.slice(12, 1), folder / "nodes.parquet")
    edges = {"src": pa.array([], pa.string()), "dst": pa.array([], pa.string())}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    alone = answered(finished, ("u12",), snapshot=folder, stage=0)
    assert isinstance(trained, Answer)
    assert isinstance(alone, Answer)
    assert np.allclose(alone.values, trained.values, atol=1e-6)


def test_training_nodes_that_are_still_there_keep_their_voices(
    finished: "Finished", monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[list[int], Any]] = []
    hear = ProgressiveRepresentation.hear

    def listening(self: ProgressiveRepresentation, nodes: Any, voices: Any, asked: Any) -> None:
        heard.append((nodes.tolist(), voices))
        hear(self, nodes, voices, asked)

    monkeypatch.setattr(ProgressiveRepresentation, "hear", listening)
    answered(finished, ("u20",), snapshot=finished.snapshot(gone=10))
    speakers = [k for k in range(10, 60) if k % 3 == 0]  # training nodes from u10 on
    nodes, voices = heard[0]
    assert nodes == [k - 10 for k in speakers]
    assert voices.argmax(axis=1).tolist() == [k // 3 % 2 for k in speakers]


def test_too_many_and_too_long_ids_are_the_peers_fault(finished: "Finished") -> None:
    for ids in (("u01",) * (MOST_IDS + 1), ("x" * (LONGEST_ID + 1),)):
        with pytest.raises(RemoteProtocolError, match="limit"):
            answered(finished, ids)


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": "inf"}, {"method": "vesper-paper-gin", "label_messages": False, "hops": 1}],
    ids=str,
)
def test_plans_that_certify_nothing_are_not_answered_for(
    train: "Train", settings: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="plan"), open_answerer(train(**settings).data):
        pass


def test_sizes_of_replies_do_not_depend_on_edges_and_no_name_of_a_graph_crosses(
    finished: "Finished",
) -> None:
    ids = ("u20", "v1", "nobody")
    frames: list[bytes] = []
    for name, step in (("one", 7), ("other", 8)):
        with open_answerer(finished.data, snapshot=finished.snapshot(name, step=step)) as answerer:
            frames.append(encode(answerer.hello))
            frames.append(encode(answerer.reply(Query(number=1, ids=ids), stage=1)))
    assert list(map(len, frames[:2])) == list(map(len, frames[2:]))
    names = {entry.graph for entry in entries(finished.ledger) if entry.graph}
    assert len(names) == 3
    assert not any(graph.encode() in frame for graph in names for frame in frames)
    assert not any(bytes.fromhex(graph) in frame for graph in names for frame in frames)


def test_a_count_of_a_snapshot_is_taken_from_its_budget_first(finished: "Finished") -> None:
    """Less than 8 would mean one hop to the method; the trained model has two, and keeps them."""
    snapshot = finished.snapshot()
    graph = open_data(snapshot).graph
    with closing(Ledger(finished.ledger, clock=lambda: 0.0)) as ledger:
        name = fingerprint(graph, key=key_of(ledger))
        account = open_account(ledger, name, num_nodes=graph.num_nodes)
        account.charge(PureRelease(epsilon=0.5, what="degrees"), None, run="degrees")
    reply = answered(finished, ("u20",), snapshot=snapshot, stage=2)
    assert isinstance(reply, Answer)
    assert reply.spent_epsilon == pytest.approx(8.0)
    assert reply.spent_epsilon <= 8.0
