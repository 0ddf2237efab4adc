import copy
import math
import os
import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.account import Account, accounts, open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import UNIT, GaussianRelease, PureRelease
from vesper.privacy.ledger import Ledger
from vesper.privacy.participation import noise_std_for
from vesper.privacy.receipt import Receipt

BUDGET = Budget(epsilon=1.0, delta=1e-6)
FOUR_FIT = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=4))


def opened(folder: Path, budget: Budget = BUDGET) -> Account:
    ledger = Ledger(folder / "ledger.sqlite", clock=lambda: 12.5)
    return open_account(ledger, "g", num_nodes=4, budget=budget)


def test_each_node_has_its_own_sum_and_the_fifth_charge_is_refused(tmp_path: Path) -> None:
    account = opened(tmp_path)
    for k in range(4):
        assert account.fits(FOUR_FIT) == 4 - k
        account.charge(FOUR_FIT, np.array([0, 1]), run="r")
    spent = 4 * FOUR_FIT.cost
    assert account.spent.tolist() == [spent, spent, 0, 0]
    with pytest.raises(BudgetError) as caught:
        account.charge(FOUR_FIT, np.array([1, 2]), run="r")
    requested = f"{FOUR_FIT.cost / UNIT:.6g}"
    assert f"Requested:  {requested}" in str(caught.value)
    assert "Remaining:" in str(caught.value)
    assert "Difference:" in str(caught.value)
    assert account.spent.tolist() == [spent, spent, 0, 0]
    account.charge(FOUR_FIT, np.array([2, 3]), run="r")
    assert account.spent.tolist() == [spent, spent, FOUR_FIT.cost, FOUR_FIT.cost]


def test_what_is_spent_is_the_budget_and_not_more(tmp_path: Path) -> None:
    account = opened(tmp_path)
    assert account.spent_epsilon() == 0
    for _ in range(4):
        account.charge(FOUR_FIT, None, run="r")
    assert 0.999 * BUDGET.epsilon <= account.spent_epsilon() <= BUDGET.epsilon


def test_a_second_run_starts_from_what_is_left(tmp_path: Path) -> None:
    opened(tmp_path).charge(FOUR_FIT, None, run="one")
    again = opened(tmp_path)
    assert again.fits(FOUR_FIT) == 3
    assert [a.graph for a in accounts(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0))] == [
        "g"
    ]


def test_a_budget_is_not_set_twice(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(InputError, match="has a budget of epsilon 1"):
        opened(tmp_path, Budget(epsilon=9.0, delta=1e-6))
    with pytest.raises(InputError, match="finite epsilon"):
        opened(tmp_path / "..", Budget(epsilon=math.inf, delta=1e-6))


def test_concurrent_runs_cannot_overspend_together(tmp_path: Path) -> None:
    event = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=16))
    opened(tmp_path)

    def spend(_: int) -> int:
        account = opened(tmp_path)
        for done in range(20):
            try:
                account.charge(event, None, run="r")
            except BudgetError:
                return done
        return 20

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 16


def test_receipts_are_not_made_by_hand() -> None:
    with pytest.raises(BudgetError, match="not by hand"):
        Receipt(event=FOUR_FIT, receivers=b"A", graph="g", sequence=1, seal=None)


def test_what_was_charged_before_a_budget_was_set_counts_against_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    unlimited = open_account(ledger, "g", num_nodes=4)
    unlimited.charge(FOUR_FIT, None, run="degrees")
    assert unlimited.budget is None
    assert opened(tmp_path).fits(FOUR_FIT) == 3
    assert open_account(ledger, "g", num_nodes=4).budget == BUDGET


def test_pure_releases_alone_add_up_plainly(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    account = open_account(ledger, "g", num_nodes=4)
    for _ in range(2):
        account.charge(PureRelease(epsilon=0.1, what="degrees"), None, run="r")
    assert account.spent_epsilon() == pytest.approx(0.2)
    account.charge(GaussianRelease(noise_std=1000.0), None, run="r")
    assert account.spent_epsilon() > 0.2


class Gift:
    """An event with a cost that no honest one has."""

    def __init__(self) -> None:
        self.cost = -(10**9)
        self.facts: dict[str, float | str] = {"kind": "gift"}


@pytest.mark.parametrize("cost", [-(10**9), 0, 2**62, 2**63 - 1, 2**63, 2**64, 10**30])
def test_costs_that_would_come_round_or_refund_are_refused(tmp_path: Path, cost: int) -> None:
    account = opened(tmp_path)
    account.charge(FOUR_FIT, None, run="r")
    event = Gift()
    event.cost = cost
    with pytest.raises(BudgetError):
        account.charge(event, None, run="r")
    assert account.spent.tolist() == [FOUR_FIT.cost] * 4


def test_huge_budgets_and_no_budget_stay_within_64_bits(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    for name, budget in (("huge", Budget(epsilon=1e9, delta=1e-6)), ("none", None)):
        account = open_account(ledger, name, num_nodes=2, budget=budget)
        assert account.cap <= 2**62
        event = Gift()
        event.cost = 2**61
        account.charge(event, None, run="r")
        account.charge(event, None, run="r")
        with pytest.raises(BudgetError):
            account.charge(event, None, run="r")
        assert account.spent.min() >= 0


def test_the_number_of_nodes_is_part_of_the_account(tmp_path: Path) -> None:
    account = opened(tmp_path)
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    with pytest.raises(InputError, match="has 4 nodes, got 3"):
        open_account(ledger, "g", num_nodes=3)
    with pytest.raises(InputError, match="at least one node"):
        open_account(ledger, "empty", num_nodes=0)
    with pytest.raises(InputError, match="node numbers"):
        account.charge(FOUR_FIT, np.array([True, False, True, True]), run="r")
    assert account.spent.max() == 0


def test_a_changed_ledger_is_not_charged(tmp_path: Path) -> None:
    opened(tmp_path).charge(FOUR_FIT, None, run="r")
    database = sqlite3.connect(tmp_path / "ledger.sqlite")
    database.execute("DROP TRIGGER entries_stay")
    database.execute("UPDATE entries SET cost = 1 WHERE cost > 1")
    database.commit()
    database.close()
    with pytest.raises(VesperError, match="was changed"):
        opened(tmp_path)


def test_receipts_cannot_be_doubled(tmp_path: Path) -> None:
    receipt = opened(tmp_path).charge(FOUR_FIT, None, run="r")
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="good twice"):
            double(receipt)
    child = os.fork()
    if child == 0:
        try:
            receipt.spend(event=FOUR_FIT, receivers=receipt.receivers, graph="g")
            os._exit(1)
        except BudgetError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
