"""A snapshot is charged once and its noise is drawn once; the model is not fitted again."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fixtures.finished_run import LATER_GRAPH

from vesper.errors import BudgetError, InputError, VesperError
from vesper.graph.graph import Graph
from vesper.graph.holdings import open_data
from vesper.mechanism.door import open_graph_account
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger
from vesper.serving.embedding_server import open_embedding_server

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
    assert first.unknown == ()
    for seed in (6, 7):  # killed and restarted, with another source of noise
        again = finished.query(("u20", "v1"), snapshot=snapshot, seed=seed, stage=stages - 1)
        assert np.array_equal(again.values, first.values)
    assert finished.charges() - before == charged
    assert first.spent_epsilon == pytest.approx(8.0)


def test_a_snapshot_is_charged_only_for_the_hops_of_the_requested_stage(
    finished: "FinishedRun",
) -> None:
    snapshot, before = finished.snapshot(), finished.charges()
    for stage, charged in ((0, 0), (1, 1), (0, 1), (2, 2), (1, 2)):
        finished.query(("v0",), snapshot=snapshot, stage=stage)
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
    assert finished.query(("v0",), snapshot=snapshot, stage=1).unknown == ()
    assert finished.charges() == before + 1


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


def count(ledger: Path, graph: Graph, name: str) -> None:
    """Charge a count, as `vesper degrees` does."""
    with closing(Ledger(ledger, clock=lambda: 0.0)) as book:
        account = open_graph_account(graph, name, ledger=book, simulated=True)
        account.charge(PureRelease(epsilon=0.5, what=DEGREES), None, run="degrees")


def test_a_count_of_a_snapshot_is_taken_from_its_budget_first(finished: "FinishedRun") -> None:
    """Below epsilon 8 the method would plan one hop; the trained model has two and keeps them."""
    snapshot = finished.snapshot()
    count(finished.ledger, open_data(snapshot).graph, LATER_GRAPH)
    reply = finished.query(("u20",), snapshot=snapshot, stage=2)
    assert reply.spent_epsilon == pytest.approx(7.5), "that of this run alone"
    with closing(Ledger(finished.ledger, clock=lambda: 0.0)) as ledger:
        balance = next(each for each in accounts(ledger) if each.graph == LATER_GRAPH)
    assert balance.spent_epsilon() == pytest.approx(8.0)
    assert balance.spent_epsilon() <= 8.0


def test_a_budget_that_does_not_suffice_is_refused_when_the_server_is_opened(
    finished: "FinishedRun",
) -> None:
    """Only the owner learns it: nobody can connect yet, and nothing is written."""
    snapshot, graph = finished.snapshot(), finished.data.party.graph
    assert graph is not None
    before = finished.entries()
    with pytest.raises(BudgetError, match="does not allow this"):
        finished.query((), snapshot=snapshot, graph=graph)  # training has spent its budget
    assert finished.entries() == before
    with (
        pytest.raises(InputError, match="expected a name for the graph"),
        open_embedding_server(finished.data, snapshot=snapshot),
    ):
        pytest.fail("the graph has no name")


def reserve_another_run(path: Path, graph: Graph) -> None:
    with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
        account = open_graph_account(graph, LATER_GRAPH, ledger=ledger, simulated=True)
        another = Reservation(plan="certified", planned_epsilon=1.0, releases=1, mu_squared=0.1)
        account.reserve(another, run="another")


def test_what_others_do_with_the_same_graph_never_makes_a_query_fail(
    finished: "FinishedRun",
) -> None:
    """The budget is reserved when the server is opened, so all others find it spent."""
    snapshot = finished.snapshot()
    graph = open_data(snapshot).graph
    with finished.open_predictor(snapshot=snapshot, stage=1) as predictor:
        predictor.predict([], limit=None)  # the server is open
        with pytest.raises(BudgetError, match="does not allow this"):
            count(finished.ledger, graph, LATER_GRAPH)
        with pytest.raises(BudgetError, match="does not allow this"):
            reserve_another_run(finished.ledger, graph)
        assert set(predictor.predict(["u20"], limit=None).values) == {"u20"}
    reservations = [e.facts["kind"] for e in finished.entries() if e.facts["kind"] != "version"]
    assert reservations[-1] == "returned"


def test_a_snapshot_that_is_fully_released_needs_no_budget_any_more(
    finished: "FinishedRun",
) -> None:
    snapshot = finished.snapshot()
    first = finished.query(("u20",), snapshot=snapshot, stage=2)
    graph = open_data(snapshot).graph
    with closing(Ledger(finished.ledger, clock=lambda: 0.0)) as ledger:
        account = open_graph_account(graph, LATER_GRAPH, ledger=ledger, simulated=True)
        account.reserve(Reservation(plan="none"), run="raw")
        account.note_unprotected(run="raw", plan="none")
    before = len(finished.entries())
    again = finished.query(("u20",), snapshot=snapshot, stage=2)
    assert np.array_equal(again.values, first.values)
    assert len(finished.entries()) == before
