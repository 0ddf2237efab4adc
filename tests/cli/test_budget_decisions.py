"""`vesper budget set|return|accept`, and what `budget show` says about each decision."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.ledger_file import default_ledger, open_to_read
from vesper.privacy.ledger.overlap import EMPTY_SLOT, GraphVersion
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

Show = Callable[[], dict[str, dict[str, Any]]]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def show(terminal: "Terminal", ledger: Path) -> Show:
    """Return what `budget show --json` says, by graph."""

    def rows() -> dict[str, dict[str, Any]]:
        assert terminal.run("budget", "show", ledger, "--json") == 0
        return {row["graph"]: row for row in json.loads(terminal.out)["graphs"]}

    return rows


def set_budget(terminal: "Terminal", ledger: Path, *more: object, epsilon: float = 8) -> int:
    usual = {"--graph": "payments", "--epsilon": epsilon, "--delta": 1e-6}
    left = (word for name, value in usual.items() if name not in more for word in (name, value))
    return terminal.run("budget", "set", ledger, *left, *more)


def reserve(path: Path, *, epsilon: float, run: str) -> None:
    """Reserve for a run and charge one of its two releases."""
    with closing(Ledger(path, clock=lambda: 0.0)) as opened:
        account = open_account(opened, "payments", num_nodes=1)
        budget = Budget(epsilon=epsilon, delta=1e-6)
        cap = cap_for(budget=budget, rows=account.relation.rows)
        account.reserve(
            Reservation(plan="certified", planned_epsilon=epsilon, releases=2, mu_squared=cap),
            run=run,
        )
        account.charge(GaussianRelease(noise_std=(3 / cap) ** 0.5), None, run=run)


def entries_of(path: Path) -> int:
    with closing(open_to_read(path)) as reader:
        assert reader.verify() is None
        return reader.head()[0]


def test_a_budget_for_several_runs(terminal: "Terminal", ledger: Path, show: Show) -> None:
    assert set_budget(terminal, ledger) == 0
    assert "graph 'payments' has a budget of epsilon 8 at delta 1e-06" in terminal.out
    row = show()["payments"]
    assert (row["epsilon"], row["delta"], row["relation"]) == (8, 1e-6, "edge")
    assert (row["spent_epsilon"], row["reserved_epsilon"], row["releases"]) == (0, 0, 0)
    before = entries_of(ledger)
    assert set_budget(terminal, ledger, epsilon=9) == 2
    assert "already has a budget of epsilon 8; a budget is not set twice" in terminal.err
    assert entries_of(ledger) == before


def test_a_budget_of_nodes(terminal: "Terminal", ledger: Path, show: Show) -> None:
    assert set_budget(terminal, ledger, "--unit", "node", "--max-degree", 50) == 0
    assert show()["payments"]["relation"] == "node"


def test_a_budget_below_what_was_spent_is_refused(terminal: "Terminal", ledger: Path) -> None:
    with closing(Ledger(ledger, clock=lambda: 0.0)) as opened:
        account = open_account(opened, "payments", num_nodes=4)
        account.charge(PureRelease(epsilon=2.0, what="degrees"), None, run="degrees")
    assert set_budget(terminal, ledger, epsilon=1) == 3
    assert set_budget(terminal, ledger, epsilon=3) == 0
    assert "2 is spent" in terminal.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--epsilon", "0"), "vesper budget set: "),
        (("--delta", "1"), "vesper budget set: "),
        (("--unit", "person"), "vesper budget set: "),
        (("--graph", "two words"), "got 'two words'"),
        (("--graph", ""), "name of the graph"),
    ],
)
def test_unusable_terms_create_no_ledger(
    terminal: "Terminal", ledger: Path, more: tuple[str, ...], message: str
) -> None:
    assert set_budget(terminal, ledger, *more) == 2
    assert message in terminal.err
    assert not ledger.exists()


def test_an_unused_rest_is_returned_once(terminal: "Terminal", ledger: Path, show: Show) -> None:
    assert set_budget(terminal, ledger) == 0
    reserve(ledger, epsilon=4.0, run="session ab")
    row = show()["payments"]
    assert row["open_reservations"] == ["session ab"]
    assert row["reserved_epsilon"] > 0
    assert row["spent_epsilon"] + row["reserved_epsilon"] == pytest.approx(4.0, rel=1e-6)
    assert terminal.run("budget", "show", ledger) == 0
    assert "graph payments: reserved for run session ab" in terminal.out
    left = row["left_epsilon"]

    assert terminal.run("budget", "return", ledger, "--run", "session cd") == 2
    assert "open reservations: 'session ab'" in terminal.err
    assert terminal.run("budget", "return", ledger, "--run", "session ab") == 0
    row = show()["payments"]
    assert (row["open_reservations"], row["reserved_epsilon"], row["releases"]) == ([], 0, 1)
    assert row["left_epsilon"] > left
    before = entries_of(ledger)
    assert terminal.run("budget", "return", ledger, "--run", "session ab") == 2
    assert "open reservations: none" in terminal.err
    assert entries_of(ledger) == before


def test_a_person_accepts_two_names_for_the_same_edges(terminal: "Terminal", ring: Path) -> None:
    for name in ("october", "november"):
        assert terminal.run("degrees", ring, "--graph", name, "--epsilon", 1) == 0
    ledger = default_ledger()

    def overlaps() -> list[str]:
        assert terminal.run("budget", "show", ledger, "--json") == 0
        rows = json.loads(terminal.out)["graphs"]
        return [text for row in rows for text in row["overlaps"]]

    first = overlaps()[0]
    assert first.startswith("graph 'october' shares all of its edges with graph 'november'")
    assert f"vesper budget accept {ledger} --graph october --other november" in first
    pair = ("--graph", "november", "--other", "october")
    assert terminal.run("budget", "accept", ledger, *pair, "--by", "Pia") == 0
    assert "Pia accepts separate budgets for 'november' and 'october'" in terminal.out
    assert [text.rpartition("; ")[2] for text in overlaps()] == ["accepted by Pia"] * 2
    assert terminal.run("budget", "show", ledger) == 0
    assert "accepted by Pia" in " ".join(terminal.out.split())
    assert terminal.run("degrees", ring, "--graph", "november", "--epsilon", 1) == 0
    assert "accepted by Pia" in terminal.err

    before = entries_of(ledger)
    pair = ("--graph", "november", "--other", "may")
    assert terminal.run("budget", "accept", ledger, *pair, "--by", "Pia") == 2
    assert "found no graph 'may'; expected one of october, november" in terminal.err
    assert entries_of(ledger) == before


def test_decisions_about_a_ledger_that_does_not_exist(terminal: "Terminal", ledger: Path) -> None:
    pair = ("--graph", "a", "--other", "b", "--by", "Pia")
    for arguments in (("return", ledger, "--run", "r"), ("accept", ledger, *pair)):
        assert terminal.run("budget", *arguments) == 2
        assert "found no file" in terminal.err
    assert not ledger.exists()


def test_nothing_is_written_to_a_ledger_that_was_changed(
    terminal: "Terminal", ledger: Path, tamper: Callable[..., None]
) -> None:
    assert set_budget(terminal, ledger) == 0
    tamper(ledger, "UPDATE entries SET time = 1 WHERE sequence = 2")
    assert set_budget(terminal, ledger) == 1
    assert "entry 2 was changed; nothing is written to it" in terminal.err


def test_simulated_noise_is_shown_as_such(terminal: "Terminal", ledger: Path, show: Show) -> None:
    with closing(Ledger(ledger, clock=lambda: 0.0)) as opened:
        event = PureRelease(epsilon=1.0, what="degrees")
        for name, simulated in (("trial", True), ("payments", False)):
            account = open_account(opened, name, num_nodes=4, simulated=simulated)
            account.charge(event, None, run="degrees")
    assert {name: row["simulated"] for name, row in show().items()} == {
        "trial": True,
        "payments": False,
    }
    assert terminal.run("budget", "show", ledger) == 0
    assert "graph trial: SIMULATED noise, not private" in terminal.out
    assert "graph payments: SIMULATED" not in terminal.out


def test_a_budget_after_versions_with_other_nodes(
    terminal: "Terminal", ledger: Path, show: Show
) -> None:
    for num_nodes in (4, 6):
        version = GraphVersion(
            num_nodes=num_nodes, ids=str(num_nodes), edges="e", sketch=EMPTY_SLOT
        )
        with closing(Ledger(ledger, clock=lambda: 0.0)) as opened:
            open_account(opened, "payments", num_nodes=num_nodes, version=version)
    assert set_budget(terminal, ledger) == 0
    assert show()["payments"]["epsilon"] == 8


def test_a_name_that_cannot_be_printed_is_refused(terminal: "Terminal", ledger: Path) -> None:
    with closing(Ledger(ledger, clock=lambda: 0.0)) as opened:
        for name in ("a", "b"):
            open_account(opened, name, num_nodes=4)
    names = ("--graph", "a", "--other", "b", "--by")
    assert terminal.run("budget", "accept", ledger, *names, "J\udcf6rg") == 2
    assert "in characters that can be printed" in terminal.err
