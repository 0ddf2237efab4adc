import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
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
