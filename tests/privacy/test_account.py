import copy
import math
import os
import pickle
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.account import Account, accounts, open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import ClippedRelease, GaussianRelease, PureRelease
from vesper.privacy.ledger import Ledger
from vesper.privacy.ledger_file import open_to_read
from vesper.privacy.participation import noise_std_for
from vesper.privacy.receipt import Receipt
from vesper.privacy.relation import EdgeRelation, NodeRelation

BUDGET = Budget(epsilon=1.0, delta=1e-6)
FOUR_FIT = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=4))


def opened(folder: Path, budget: Budget | None = BUDGET) -> Account:
    ledger = Ledger(folder / "ledger.sqlite", clock=lambda: 12.5)
    return open_account(ledger, "g", num_nodes=4, budget=budget)


def charges(account: Account) -> list[float]:
    """What each node was charged, in releases of which four fit."""
    whole = account.spent.max()
    return [round(4 * (value / account._cap.units), 9) for value in account.spent] if whole else []


def test_each_node_has_its_own_sum_and_the_fifth_charge_is_refused(tmp_path: Path) -> None:
    account = opened(tmp_path)
    for k in range(4):
        assert account.fits(FOUR_FIT) == 4 - k
        account.charge(FOUR_FIT, np.array([0, 1]), run="r")
    assert charges(account) == [4, 4, 0, 0]
    with pytest.raises(BudgetError) as caught:
        account.charge(FOUR_FIT, np.array([1, 2]), run="r")
    assert f"Requested:  {FOUR_FIT.cost:.6g}" in str(caught.value)
    assert "Remaining:" in str(caught.value)
    assert "Difference:" in str(caught.value)
    assert charges(account) == [4, 4, 0, 0]
    account.charge(FOUR_FIT, np.array([2, 3]), run="r")
    assert charges(account) == [4, 4, 1, 1]


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


def test_whole_numbers_are_budgets_too(tmp_path: Path) -> None:
    for _ in range(2):
        assert opened(tmp_path, Budget(epsilon=3, delta=1e-6)).budget == Budget(
            epsilon=3.0, delta=1e-6
        )


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
    unlimited = opened(tmp_path, None)
    unlimited.charge(FOUR_FIT, None, run="degrees")
    assert unlimited.budget is None
    assert opened(tmp_path).fits(FOUR_FIT) == 3
    assert opened(tmp_path, None).budget == BUDGET


@pytest.mark.parametrize("counted", [0.0, 0.25])
def test_an_account_opened_before_the_budget_was_set_keeps_to_it(
    tmp_path: Path, counted: float
) -> None:
    early = opened(tmp_path, None)
    if counted:
        early.charge(PureRelease(epsilon=counted, what="counts"), None, run="early")
    event = GaussianRelease(noise_std=opened(tmp_path).noise_std_for(releases=2))
    early.charge(event, None, run="early")
    assert early.budget == BUDGET
    early.charge(event, None, run="early")
    with pytest.raises(BudgetError, match="Requested"):
        early.charge(event, None, run="early")
    fresh = opened(tmp_path)
    assert (fresh.spent == early.spent).all()
    assert (fresh.pure, fresh.releases) == (early.pure, early.releases)


@pytest.mark.parametrize(
    "spent", [PureRelease(epsilon=1.1, what="counts"), GaussianRelease(noise_std=1.0)]
)
def test_a_budget_below_what_is_spent_is_refused_and_not_set(
    tmp_path: Path, spent: PureRelease | GaussianRelease
) -> None:
    account = opened(tmp_path, None)
    account.charge(spent, None, run="r")
    with pytest.raises(BudgetError) as caught:
        opened(tmp_path)
    assert f"Requested:  {account.spent_epsilon(1e-6):.6g}" in str(caught.value)
    assert "Remaining:  1\n" in str(caught.value)
    assert "Difference: " in str(caught.value)
    assert opened(tmp_path, None).budget is None
    enough = opened(tmp_path, Budget(epsilon=20.0, delta=1e-6))
    assert enough.spent_epsilon() <= 20


def test_pure_releases_alone_add_up_plainly(tmp_path: Path) -> None:
    account = opened(tmp_path, None)
    for _ in range(2):
        account.charge(PureRelease(epsilon=0.1, what="degrees"), None, run="r")
    assert account.spent_epsilon() == pytest.approx(0.2)
    account.charge(GaussianRelease(noise_std=1000.0), None, run="r")
    assert account.spent_epsilon() > 0.2


def test_a_count_before_training_costs_what_it_says(tmp_path: Path) -> None:
    opened(tmp_path, None).charge(PureRelease(epsilon=0.1, what="degrees"), None, run="d")
    account = opened(tmp_path)
    event = GaussianRelease(noise_std=account.noise_std_for(releases=4))
    assert event.noise_std < 1.12 * FOUR_FIT.noise_std
    for _ in range(4):
        account.charge(event, None, run="r")
    assert 0.999 <= account.spent_epsilon() <= 1


def test_a_node_level_budget_is_kept_apart(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    node = NodeRelation(max_degree=16, row_norm=4)
    account = open_account(ledger, "g", num_nodes=4, budget=BUDGET, relation=node)
    event = ClippedRelease(noise_std=account.noise_std_for(releases=1), row_norm=4.0)
    account.charge(event, None, run="r")
    assert account.fits(event) == 0
    assert open_account(ledger, "g", num_nodes=4).relation == node
    with pytest.raises(InputError, match="for NodeRelation"):
        open_account(ledger, "g", num_nodes=4, budget=BUDGET)
    assert [balance.relation for balance in accounts(ledger)] == [node]
    edge = open_account(ledger, "other", num_nodes=4, budget=BUDGET)
    assert edge.relation == EdgeRelation()
    edge.charge(event, None, run="r")  # one edge moves less: several of these would fit
    assert edge.fits(event) > 10


def test_what_was_charged_for_edges_cannot_be_budgeted_for_nodes(tmp_path: Path) -> None:
    opened(tmp_path, None).charge(GaussianRelease(noise_std=1000.0), None, run="r")
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    node = NodeRelation(max_degree=2, row_norm=1)
    with pytest.raises(InputError, match="has no cost for NodeRelation"):
        open_account(ledger, "g", num_nodes=4, budget=BUDGET, relation=node)


class Gift:
    """An event with a cost that no honest one has."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.facts: dict[str, float | str] = {"kind": "gift"}


@pytest.mark.parametrize(
    "cost", [-1e9, 0.0, -0.0, 2.0**62, 2.0**64, 1e300, math.inf, -math.inf, math.nan]
)
def test_costs_that_would_come_round_or_refund_are_refused(tmp_path: Path, cost: float) -> None:
    account = opened(tmp_path)
    account.charge(FOUR_FIT, None, run="r")
    with pytest.raises(BudgetError):
        account.charge(Gift(cost), None, run="r")
    assert charges(account) == [1, 1, 1, 1]


def test_huge_budgets_and_no_budget_stay_within_64_bits(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    for name, budget in (("huge", Budget(epsilon=1e9, delta=1e-6)), ("none", None)):
        account = open_account(ledger, name, num_nodes=2, budget=budget)
        event = Gift(float(account._cap.units / account._cap.unit) / 2 * (1 - 1e-9))
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
    database.execute("UPDATE entries SET cost = cost / 2")
    database.commit()
    database.close()
    with pytest.raises(VesperError, match="was changed"):
        opened(tmp_path)


def test_receipts_cannot_be_doubled(tmp_path: Path) -> None:
    receipt = opened(tmp_path).charge(FOUR_FIT, None, run="r")
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="good twice"):
            double(receipt)


FORK = """
import os, sys
from pathlib import Path
from vesper.errors import BudgetError
from vesper.privacy.account import open_account
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger import Ledger

account = open_account(Ledger(Path(sys.argv[1]), clock=lambda: 0.0), "g", num_nodes=4)
event = GaussianRelease(noise_std=9.0)
receipt = account.charge(event, None, run="r")
child = os.fork()
try:
    receipt.spend(event=event, receivers=receipt.receivers, graph="g")
    answer = "spent"
except BudgetError:
    answer = "refused"
if child:
    os.waitpid(child, 0)
os.write(1, f"{'parent' if child else 'child'} {answer}\\n".encode())
os._exit(0)
"""


def test_a_receipt_is_not_good_in_a_fork(tmp_path: Path) -> None:
    done = subprocess.run(  # in a process of one thread: others are not to be forked
        [sys.executable, "-W", "error", "-c", FORK, str(tmp_path / "ledger.sqlite")],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["child refused", "parent spent"], done.stderr


def test_a_ledger_without_the_entry_of_a_graph_is_no_ledger(tmp_path: Path) -> None:
    opened(tmp_path).charge(FOUR_FIT, None, run="r")
    database = sqlite3.connect(tmp_path / "ledger.sqlite")
    database.execute("DROP TRIGGER entries_last")
    database.execute("DELETE FROM entries WHERE facts LIKE '%num_nodes%'")
    database.commit()
    database.close()
    with pytest.raises(InputError, match="which no entry introduces"):
        accounts(open_to_read(tmp_path / "ledger.sqlite"))


@pytest.mark.parametrize(
    ("column", "value"), [("receivers", b"?"), ("cost", 1e6), ("facts", '{"kind": "pure release"}')]
)
def test_charges_that_make_no_sense_are_named(tmp_path: Path, column: str, value: object) -> None:
    opened(tmp_path).charge(FOUR_FIT, None, run="r")
    database = sqlite3.connect(tmp_path / "ledger.sqlite")
    database.execute("DROP TRIGGER entries_stay")
    database.execute(f"UPDATE entries SET {column} = ? WHERE cost > 0", (value,))
    database.commit()
    database.close()
    with pytest.raises(InputError, match="entry 4 is none that vesper wrote"):
        accounts(open_to_read(tmp_path / "ledger.sqlite"))
