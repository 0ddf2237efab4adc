"""The budget check compares what a run will cost with what is left, and charges nothing."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.preflight import check_budget_for_run
from vesper.errors import BudgetError, InputError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.mechanism.fingerprint import fingerprint
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.session.config import load_config

if TYPE_CHECKING:
    from tests.conftest import Institutions

BUDGET = Budget(epsilon=4.0, delta=1e-3)
CONFIG = load_config(None, {"epsilon": 4.0, "delta": 1e-3})


@pytest.fixture
def data(institutions: "Institutions") -> DataHoldings:
    return open_data(institutions.data / "data")


def charge(path: Path, data: DataHoldings, event: GaussianRelease | PureRelease | None) -> None:
    with closing(Ledger(path, clock=time.time)) as ledger:
        name = fingerprint(data.graph, key=key_of(ledger))
        account = open_account(ledger, name, num_nodes=len(data.ids), budget=BUDGET)
        if event is not None:
            account.charge(event, None, run="before")


def entries(path: Path) -> int:
    with closing(Ledger(path, clock=time.time)) as ledger:
        return ledger.head()[0]


def test_a_missing_ledger_is_not_created(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    text = check_budget_for_run(CONFIG, data, ledger)
    assert text == f"the run may use epsilon 4 at delta 0.001; {ledger} will be created"
    assert not ledger.exists()
    with pytest.raises(InputError, match="its folder is missing or cannot be written"):
        check_budget_for_run(CONFIG, data, tmp_path / "none" / "ledger.sqlite")


def test_an_unspent_budget(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    charge(ledger, data, None)
    before = entries(ledger)
    assert check_budget_for_run(CONFIG, data, ledger).endswith("; epsilon 0 is spent already")
    assert entries(ledger) == before


def test_earlier_charges_are_reported(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    charge(ledger, data, PureRelease(epsilon=0.5, what="count"))
    assert check_budget_for_run(CONFIG, data, ledger).endswith("; epsilon 0.5 is spent already")


def test_counts_of_another_graph_that_leave_nothing(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with closing(Ledger(ledger, clock=time.time)) as book:
        account = open_account(book, "another", num_nodes=3)
        account.charge(PureRelease(epsilon=4.0, what=DEGREES), None, run="degrees")
    before = entries(ledger)
    with pytest.raises(BudgetError, match="leaves nothing of epsilon 4"):
        check_budget_for_run(CONFIG, data, ledger)
    assert entries(ledger) == before
    raised = load_config(None, {"epsilon": 5.0, "delta": 1e-3})  # no budget was set yet
    assert "epsilon 5" in check_budget_for_run(raised, data, ledger)


@pytest.mark.parametrize("method", ["edgerand", "lapgraph"])
def test_noisy_edges_are_one_pure_release(tmp_path: Path, data: DataHoldings, method: str) -> None:
    ledger = tmp_path / "ledger.sqlite"
    config = load_config(None, {"epsilon": 4.0, "delta": 1e-3, "method": method})
    charge(ledger, data, None)
    assert check_budget_for_run(config, data, ledger).endswith("; epsilon 0 is spent already")
    charge(ledger, data, PureRelease(epsilon=4.0, what="randomised edges"))
    with pytest.raises(BudgetError, match="does not allow this release"):
        check_budget_for_run(config, data, ledger)


def test_charges_for_one_edge_have_no_known_cost_for_a_node(
    tmp_path: Path, data: DataHoldings
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with closing(Ledger(ledger, clock=time.time)) as book:
        name = fingerprint(data.graph, key=key_of(book))
        account = open_account(book, name, num_nodes=len(data.ids))
        account.charge(PureRelease(epsilon=0.5, what=DEGREES), None, run="degrees")
    node = load_config(None, {"epsilon": 4.0, "delta": 1e-3, "privacy_unit": "node"})
    with pytest.raises(InputError, match="a pure release, which has no known cost for"):
        check_budget_for_run(node, data, ledger)


def test_a_spent_budget(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    charge(ledger, data, GaussianRelease(noise_std=20.0))
    before = entries(ledger)
    with pytest.raises(BudgetError, match="does not allow this release"):
        check_budget_for_run(CONFIG, data, ledger)
    assert entries(ledger) == before


def test_another_budget_than_the_graph_has(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    charge(ledger, data, None)
    other = load_config(None, {"epsilon": 2.0, "delta": 1e-3})
    with pytest.raises(InputError, match=r"a budget of epsilon 4, .* asks for epsilon 2, .*fix"):
        check_budget_for_run(other, data, ledger)


def test_plans_that_charge_nothing(tmp_path: Path, data: DataHoldings) -> None:
    for settings, plan in (({"method": "mlp"}, "edge-free"), ({"epsilon": float("inf")}, "none")):
        text = check_budget_for_run(load_config(None, settings), data, tmp_path / "ledger.sqlite")
        assert text.startswith(f"plan '{plan}': nothing is charged")


def test_a_ledger_that_was_changed(tmp_path: Path, data: DataHoldings) -> None:
    ledger = tmp_path / "ledger.sqlite"
    charge(ledger, data, None)
    (tmp_path / "ledger.sqlite.key").unlink()
    with pytest.raises(VesperError, match="key"):
        check_budget_for_run(CONFIG, data, ledger)
    ledger.write_text("hello, this is no ledger at all")
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        check_budget_for_run(CONFIG, data, ledger)
