"""One line per graph: of a simulation, of a state folder, and without snapshots."""

from contextlib import closing
from pathlib import Path
from typing import Any

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger
from vesper.report.contents import command_of
from vesper.report.graphs import GraphLine, graph_lines, graphs_section
from vesper.serving.snapshots import SnapshotStore
from vesper.session.config import load_config

SNAPSHOT = {
    "name": "february",
    "num_nodes": 1602,
    "test": 73.12,
    "epsilon": 4.0,
    "delta": 1e-5,
    "spent_epsilon": 3.9996,
    "releases": 1,
}


def result(**changes: Any) -> dict[str, Any]:
    facts = {"certified_epsilon": 4.0, "delta": 1e-6, "releases": 2}
    return {"test": 79.4, "privacy": facts, **changes}


def test_a_simulation_has_a_line_for_training_and_each_snapshot(tmp_path: Path) -> None:
    lines = graph_lines(tmp_path, result(snapshots=[SNAPSHOT]), run_charges=None, ledger=None)
    assert [line.name for line in lines] == ["training", "february"]
    assert (lines[0].test, lines[0].epsilon, lines[0].releases) == (79.4, 4.0, 2)
    assert lines[1] == GraphLine(
        name="february",
        nodes=1602,
        test=73.12,
        epsilon=4.0,
        delta=1e-5,
        spent_epsilon=3.9996,
        releases=1,
    )


def test_each_of_several_data_parties_has_its_own_line(tmp_path: Path) -> None:
    costs = [
        {**SNAPSHOT, "name": name, "epsilon": epsilon} for name, epsilon in (("a", 4), ("b", 1))
    ]
    snapshot = {**SNAPSHOT, "parties": costs}
    lines = graph_lines(tmp_path, result(snapshots=[snapshot]), run_charges=None, ledger=None)
    assert [(line.name, line.epsilon) for line in lines[1:]] == [
        ("february, a", 4),
        ("february, b", 1),
    ]
    assert {line.test for line in lines[1:]} == {73.12}


def test_a_served_snapshot_has_the_charges_of_its_own_run_alone(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "state" / "snapshots")
    snapshot = store.find_or_add("payments", "digest", folder=tmp_path / "march")
    path, event = tmp_path / "ledger.sqlite", GaussianRelease(noise_std=9.0)
    with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
        budget = Budget(epsilon=4.0, delta=1e-6)
        account = open_account(ledger, "payments", num_nodes=5, budget=budget)
        planned = Reservation(plan="certified", planned_epsilon=1.0, releases=1, mu_squared=0.05)
        account.reserve(planned, run=snapshot.run)
        account.charge(event, None, run=snapshot.run)
    facts = {"session": "ab", **result()}

    def lines() -> tuple[GraphLine, ...]:
        return graph_lines(tmp_path / "state", facts, run_charges=None, ledger=path)

    before = lines()
    with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
        account = open_account(ledger, "payments", num_nodes=5)
        account.charge(event, None, run="another run")
    assert lines() == before
    line = before[1]
    assert (line.name, line.nodes, line.epsilon, line.releases) == ("march", 5, 1.0, 1)
    assert line.spent_epsilon is not None
    assert 0 < line.spent_epsilon < 1


def test_one_graph_needs_no_table(tmp_path: Path) -> None:
    for none in (result(), result(snapshots=[]), result(session="ab")):
        assert graph_lines(tmp_path, none, run_charges=None, ledger=None) == ()
    assert graphs_section((), metric="ROC AUC") == ""


def test_what_is_not_known_is_left_out_and_names_are_escaped() -> None:
    lines = [GraphLine(name="<b>", epsilon=4.0), GraphLine(name="next", epsilon=2.0)]
    section = graphs_section(lines, metric="ROC AUC")
    assert "&lt;b&gt;" in section
    assert "ROC AUC" not in section
    assert "releases" not in section
    assert "adds up" in section


def test_the_command_has_the_snapshots() -> None:
    command = command_of(load_config(None, {}), snapshots=["february", "in march"])
    assert "--snapshot february --snapshot 'in march'" in command
