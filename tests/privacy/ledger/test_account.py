"""Budgets and charges: what fits, what is refused, and what several runs do together."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import noise_std_for, spent_epsilon
from vesper.privacy.events import ClippedRelease, GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.relation import EdgeRelation, NodeRelation

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

BUDGET = Budget(epsilon=1.0, delta=1e-6)
FOUR_FIT = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=4))


def charges(account: Account) -> list[float]:
    """Charge of each node, in units of releases of which four fit."""
    whole = account.spent.max()
    return [round(4 * (value / account._cap.units), 9) for value in account.spent] if whole else []


def test_each_node_has_its_own_sum_and_the_fifth_charge_is_refused(folder: "LedgerFolder") -> None:
    account = folder.account()
    for k in range(4):
        assert account.fits(FOUR_FIT) == 4 - k
        account.charge(FOUR_FIT, np.array([0, 1]), run="r")
    assert charges(account) == [4, 4, 0, 0]
    with pytest.raises(BudgetError) as caught:
        account.charge(FOUR_FIT, np.array([1, 2]), run="r")
    alone = spent_epsilon(spent=FOUR_FIT.cost, delta=account.delta)
    assert f"Requested:  {alone:.6g}" in str(caught.value)
    assert "(epsilon at delta" in str(caught.value)
    assert "Remaining:" in str(caught.value)
    assert "Difference:" in str(caught.value)
    assert "mu" not in str(caught.value)
    assert charges(account) == [4, 4, 0, 0]
    account.charge(FOUR_FIT, np.array([2, 3]), run="r")
    assert charges(account) == [4, 4, 1, 1]


def test_spent_epsilon_reaches_the_budget_and_no_more(folder: "LedgerFolder") -> None:
    account = folder.account()
    assert account.spent_epsilon() == 0
    for _ in range(4):
        account.charge(FOUR_FIT, None, run="r")
    assert 0.999 * BUDGET.epsilon <= account.spent_epsilon() <= BUDGET.epsilon


def test_a_second_run_starts_from_what_is_left(folder: "LedgerFolder") -> None:
    folder.account().charge(FOUR_FIT, None, run="one")
    again = folder.account()
    assert again.fits(FOUR_FIT) == 3
    assert [a.graph for a in accounts(folder.open())] == ["g"]


def test_a_budget_is_finite_and_not_set_twice(folder: "LedgerFolder") -> None:
    with pytest.raises(InputError, match="finite epsilon"):
        folder.account(Budget(epsilon=math.inf, delta=1e-6))
    folder.account()
    with pytest.raises(InputError, match="has a budget of epsilon 1"):
        folder.account(Budget(epsilon=9.0, delta=1e-6))


def test_whole_numbers_are_budgets_too(folder: "LedgerFolder") -> None:
    for _ in range(2):
        assert folder.account(Budget(epsilon=3, delta=1e-6)).budget == Budget(
            epsilon=3.0, delta=1e-6
        )


def test_concurrent_runs_cannot_overspend_together(folder: "LedgerFolder") -> None:
    event = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=16))
    folder.account()

    def spend(_: int) -> int:
        account = folder.account()
        for done in range(20):
            try:
                account.charge(event, None, run="r")
            except BudgetError:
                return done
        return 20

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 16


def test_charges_before_a_budget_was_set_count_against_it(folder: "LedgerFolder") -> None:
    unlimited = folder.account(None)
    unlimited.charge(FOUR_FIT, None, run="degrees")
    assert unlimited.budget is None
    assert folder.account().fits(FOUR_FIT) == 3
    assert folder.account(None).budget == BUDGET


@pytest.mark.parametrize("counted", [0.0, 0.25])
def test_an_account_opened_before_the_budget_was_set_obeys_it(
    folder: "LedgerFolder", counted: float
) -> None:
    early = folder.account(None)
    if counted:
        early.charge(PureRelease(epsilon=counted, what="counts"), None, run="early")
    event = GaussianRelease(noise_std=folder.account().noise_std_for(releases=2))
    early.charge(event, None, run="early")
    assert early.budget == BUDGET
    early.charge(event, None, run="early")
    with pytest.raises(BudgetError, match="Requested"):
        early.charge(event, None, run="early")
    fresh = folder.account()
    assert (fresh.spent == early.spent).all()
    assert (fresh.pure, fresh.releases) == (early.pure, early.releases)


@pytest.mark.parametrize(
    "spent", [PureRelease(epsilon=1.1, what="counts"), GaussianRelease(noise_std=1.0)]
)
def test_a_budget_below_what_is_spent_is_refused_and_not_set(
    folder: "LedgerFolder", spent: PureRelease | GaussianRelease
) -> None:
    account = folder.account(None)
    account.charge(spent, None, run="r")
    with pytest.raises(BudgetError) as caught:
        folder.account()
    assert f"Requested:  {account.spent_epsilon(1e-6):.6g}" in str(caught.value)
    assert "Remaining:  1\n" in str(caught.value)
    assert "Difference: " in str(caught.value)
    assert folder.account(None).budget is None
    enough = folder.account(Budget(epsilon=20.0, delta=1e-6))
    assert enough.spent_epsilon() <= 20


def test_epsilons_of_pure_releases_alone_add_up(folder: "LedgerFolder") -> None:
    account = folder.account(None)
    for _ in range(2):
        account.charge(PureRelease(epsilon=0.1, what="degrees"), None, run="r")
    assert account.spent_epsilon() == pytest.approx(0.2)
    account.charge(GaussianRelease(noise_std=1000.0), None, run="r")
    assert account.spent_epsilon() > 0.2


def test_a_count_before_training_costs_its_own_epsilon(folder: "LedgerFolder") -> None:
    folder.account(None).charge(PureRelease(epsilon=0.1, what="degrees"), None, run="d")
    account = folder.account()
    event = GaussianRelease(noise_std=account.noise_std_for(releases=4))
    assert event.noise_std < 1.12 * FOUR_FIT.noise_std
    for _ in range(4):
        account.charge(event, None, run="r")
    assert 0.999 <= account.spent_epsilon() <= 1


def test_a_node_level_budget_is_separate(folder: "LedgerFolder") -> None:
    ledger = folder.open()
    node = NodeRelation(max_degree=16, row_norm=4)
    account = open_account(ledger, "g", num_nodes=4, budget=BUDGET, relation=node)
    event = ClippedRelease(noise_std=account.noise_std_for(releases=1), row_norm=4.0)
    account.charge(event, None, run="r")
    assert account.fits(event) == 0
    assert open_account(ledger, "g", num_nodes=4).relation == node
    with pytest.raises(InputError, match="for one node of at most"):
        open_account(ledger, "g", num_nodes=4, budget=BUDGET)
    assert [balance.relation for balance in accounts(ledger)] == [node]
    edge = open_account(ledger, "other", num_nodes=4, budget=BUDGET)
    assert edge.relation == EdgeRelation()
    edge.charge(event, None, run="r")  # one edge moves less: several of these fit
    assert edge.fits(event) > 10


def test_charges_under_the_edge_relation_cannot_get_a_node_budget(folder: "LedgerFolder") -> None:
    folder.account(None).charge(GaussianRelease(noise_std=1000.0), None, run="r")
    ledger = folder.open()
    node = NodeRelation(max_degree=2, row_norm=1)
    with pytest.raises(InputError, match="has no cost for one node of at most"):
        open_account(ledger, "g", num_nodes=4, budget=BUDGET, relation=node)


class DishonestEvent:
    """An event with a cost that no honest event has."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.facts: dict[str, float | str] = {"kind": "dishonest"}


@pytest.mark.parametrize(
    "cost", [-1e9, 0.0, -0.0, 2.0**62, 2.0**64, 1e300, math.inf, -math.inf, math.nan]
)
def test_costs_that_would_overflow_or_refund_are_refused(
    folder: "LedgerFolder", cost: float
) -> None:
    account = folder.account()
    account.charge(FOUR_FIT, None, run="r")
    with pytest.raises(BudgetError):
        account.charge(DishonestEvent(cost), None, run="r")
    assert charges(account) == [1, 1, 1, 1]


def test_huge_budgets_and_no_budget_stay_within_64_bits(folder: "LedgerFolder") -> None:
    ledger = folder.open()
    for name, budget in (("huge", Budget(epsilon=1e9, delta=1e-6)), ("none", None)):
        account = open_account(ledger, name, num_nodes=2, budget=budget)
        event = DishonestEvent(float(account._cap.units / account._cap.unit) / 2 * (1 - 1e-9))
        account.charge(event, None, run="r")
        account.charge(event, None, run="r")
        with pytest.raises(BudgetError):
            account.charge(event, None, run="r")
        assert account.spent.min() >= 0


def test_the_number_of_nodes_is_part_of_the_account(folder: "LedgerFolder") -> None:
    account = folder.account()
    ledger = folder.open()
    with pytest.raises(InputError, match="has 4 nodes, got 3"):
        open_account(ledger, "g", num_nodes=3)
    with pytest.raises(InputError, match="at least one node"):
        open_account(ledger, "empty", num_nodes=0)
    with pytest.raises(InputError, match="node numbers"):
        account.charge(FOUR_FIT, np.array([True, False, True, True]), run="r")
    assert account.spent.max() == 0


def test_a_graph_used_without_a_guarantee_has_spent_everything(folder: "LedgerFolder") -> None:
    account = folder.account()
    account.charge(FOUR_FIT, None, run="first")
    account.note_unprotected(run="raw", plan="none")
    account.note_unprotected(run="raw", plan="none")  # when resumed after a crash
    for balance in (account, folder.account(), accounts(folder.open())[0]):
        assert balance.unprotected == "raw"
        assert balance.spent_epsilon() == math.inf
        left = (balance.left_epsilon(), balance.left_mu_squared, balance.fits(FOUR_FIT))
        assert left == (0, 0, 0)
    kinds = [entry.facts["kind"] for entry in folder.open().entries()]
    assert kinds.count("unprotected") == 1
    with pytest.raises(BudgetError, match="without a guarantee by run raw"):
        folder.account().charge(FOUR_FIT, None, run="second")
    assert folder.open().verify() is None


def test_no_budget_is_set_for_a_graph_used_without_a_guarantee(folder: "LedgerFolder") -> None:
    folder.account(budget=None).note_unprotected(run="raw", plan="paper")
    with pytest.raises(BudgetError, match="without a guarantee by run raw"):
        folder.account()
    other = open_account(folder.open(), "another", num_nodes=4, budget=BUDGET)
    assert other.fits(FOUR_FIT) == 4
