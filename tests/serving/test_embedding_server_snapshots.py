"""A snapshot is charged once and its noise is drawn once; the model is not fitted again."""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError, VesperError
from vesper.export.writer import export_features
from vesper.graph.holdings import open_data
from vesper.mechanism.fingerprint import fingerprint
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import accounts, open_account
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.protocol.messages import QueryAnswer
from vesper.session.config import load_config

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train


@pytest.mark.parametrize(
    ("settings", "stages"),
    [
        ({}, 3),
        ({"hops": 2, "aggregator": "gcn"}, 3),
        ({"method": "gap", "label_messages": False}, 2),
        ({"method": "progap", "label_messages": False}, 3),
        ({"method": "edgerand", "label_messages": False}, 1),
    ],
    ids=str,
)
def test_a_snapshot_is_charged_once_and_its_noise_is_never_redrawn(
    train: "Train", settings: dict[str, Any], stages: int
) -> None:
    finished = train(**settings)
    snapshot, before = finished.snapshot(), finished.charges()
    first = finished.query(("u20", "v1"), snapshot=snapshot, seed=5, stage=stages - 1)
    charged = finished.charges() - before
    assert charged == (1 if stages == 1 else 2)
    assert isinstance(first, QueryAnswer)
    assert first.unknown == ()
    written = finished.ledger.read_bytes()
    for seed in (6, 7):  # killed and restarted, with another source of noise
        again = finished.query(("u20", "v1"), snapshot=snapshot, seed=seed, stage=stages - 1)
        assert isinstance(again, QueryAnswer)
        assert np.array_equal(again.values, first.values)
    assert finished.ledger.read_bytes() == written
    assert first.spent_epsilon == pytest.approx(8.0)


def test_a_snapshot_is_charged_only_for_the_hops_of_the_requested_stage(
    finished: "FinishedRun",
) -> None:
    snapshot, before = finished.snapshot(), finished.charges()
    for stage, charged in ((0, 0), (1, 1), (0, 1), (2, 2), (1, 2)):
        reply = finished.query(("v0",), snapshot=snapshot, stage=stage)
        assert isinstance(reply, QueryAnswer)
        assert finished.charges() - before == charged


def test_a_crash_between_charge_and_release_is_not_charged_again(
    finished: "FinishedRun", monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, before = finished.snapshot(), finished.charges()

    def fail(*_: object) -> None:
        raise VesperError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr("vesper.mechanism.release_store.ReleaseStore.put", fail)
        with pytest.raises(VesperError, match="disk full"):
            finished.query(("v0",), snapshot=snapshot, stage=1)
    assert finished.charges() == before + 1
    assert isinstance(finished.query(("v0",), snapshot=snapshot, stage=1), QueryAnswer)
    assert finished.charges() == before + 1


@pytest.mark.parametrize("epsilon", [8.0, 1.0])
def test_edges_that_another_run_was_charged_for_are_refused_before_any_peer_connects(
    finished: "FinishedRun", epsilon: float
) -> None:
    """Answers, or a refusal for lack of budget, would reveal that no edge has changed since."""
    snapshot = finished.snapshot()
    settings = load_config(None, {"epsilon": epsilon, "hops": 1})
    export_features(snapshot, settings, finished.root / "released.parquet", ledger=finished.ledger)
    before = finished.entries()
    with pytest.raises(InputError, match=r"its edges are exactly those .* export"):
        finished.query(("u20",), snapshot=snapshot)
    assert finished.entries() == before


def test_features_are_scaled_as_in_training(finished: "FinishedRun") -> None:
    """One node alone in a snapshot, stage 0: refitted scales would make its features zero."""
    trained = finished.query(("u12",), stage=0)
    folder = finished.root / "alone"
    folder.mkdir()
    table = pq.read_table(finished.data.party.folder / "nodes.parquet")
    pq.write_table(table.slice(12, 1), folder / "nodes.parquet")
    edges = {"src": pa.array([], pa.string()), "dst": pa.array([], pa.string())}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    alone = finished.query(("u12",), snapshot=folder, stage=0)
    assert isinstance(trained, QueryAnswer)
    assert isinstance(alone, QueryAnswer)
    assert np.allclose(alone.values, trained.values, atol=1e-6)


def test_training_nodes_that_still_exist_keep_their_label_posteriors(
    finished: "FinishedRun", monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[list[int], Any]] = []
    set_labels = StagedRepresentation.set_labels

    def record(
        self: StagedRepresentation, nodes: Any, label_posteriors: Any, query_nodes: Any
    ) -> None:
        calls.append((nodes.tolist(), label_posteriors))
        set_labels(self, nodes, label_posteriors, query_nodes)

    monkeypatch.setattr(StagedRepresentation, "set_labels", record)
    finished.query(("u20",), snapshot=finished.snapshot(gone=10))
    labelled_nodes = [k for k in range(10, 60) if k % 3 == 0]  # training nodes from u10 on
    nodes, label_posteriors = calls[0]
    assert nodes == [k - 10 for k in labelled_nodes]
    assert label_posteriors.argmax(axis=1).tolist() == [k // 3 % 2 for k in labelled_nodes]


def test_a_count_of_a_snapshot_is_taken_from_its_budget_first(finished: "FinishedRun") -> None:
    """Below epsilon 8 the method would plan one hop; the trained model has two and keeps them."""
    snapshot = finished.snapshot()
    graph = open_data(snapshot).graph
    with closing(Ledger(finished.ledger, clock=lambda: 0.0)) as ledger:
        name = fingerprint(graph, key=key_of(ledger))
        account = open_account(ledger, name, num_nodes=graph.num_nodes)
        account.charge(PureRelease(epsilon=0.5, what=DEGREES), None, run="degrees")
    reply = finished.query(("u20",), snapshot=snapshot, stage=2)
    assert isinstance(reply, QueryAnswer)
    with closing(Ledger(finished.ledger, clock=lambda: 0.0)) as ledger:
        balance = next(each for each in accounts(ledger) if each.graph == name)
    assert reply.spent_epsilon == balance.spent_epsilon() == pytest.approx(8.0)
    assert reply.spent_epsilon <= 8.0


def test_replies_do_not_depend_on_which_graph_was_counted(finished: "FinishedRun") -> None:
    """Noise and replies are the same whether or not an older snapshot has the same edges."""
    budgets = []
    for counted in ("later", "other"):
        with closing(Ledger(finished.ledger, clock=lambda: 0.0)) as ledger:
            snapshot = finished.snapshot(counted, step=7 if counted == "later" else 9)
            graph = open_data(snapshot).graph
            if counted == "later":
                name = fingerprint(graph, key=key_of(ledger))
                account = open_account(ledger, name, num_nodes=graph.num_nodes)
                account.charge(PureRelease(epsilon=0.5, what=DEGREES), None, run="degrees")
        reply = finished.query(("u20",), snapshot=snapshot, stage=2)
        assert isinstance(reply, QueryAnswer)
        budgets.append((round(reply.spent_epsilon, 3), round(reply.left_epsilon, 3)))
    assert budgets[0] == budgets[1]
