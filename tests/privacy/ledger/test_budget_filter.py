"""Versions with other nodes, kinds of noise, and entries that no filter can have admitted."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for, noise_std_for
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.budget_filter import OverdrawnError
from vesper.privacy.ledger.overlap import EMPTY_SLOT, GraphVersion
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.ledger.reservation import Reservation, return_unused

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

BUDGET = Budget(epsilon=1.0, delta=1e-6)
FOUR_FIT = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=4))


def version(num_nodes: int, ids: str = "october", edges: str = "e") -> GraphVersion:
    return GraphVersion(num_nodes=num_nodes, ids=ids, edges=edges, sketch=EMPTY_SLOT)


def opened(
    folder: "LedgerFolder", shown: GraphVersion, *, budget: Budget | None = BUDGET
) -> Account:
    return open_account(folder.open(), "g", num_nodes=shown.num_nodes, version=shown, budget=budget)


def test_versions_with_other_edges_share_what_each_node_has_spent(folder: "LedgerFolder") -> None:
    opened(folder, version(4)).charge(FOUR_FIT, np.array([0, 1]), run="r")
    later = opened(folder, version(4, edges="others"))
    assert (later.spent > 0).tolist() == [True, True, False, False]
    later.charge(FOUR_FIT, np.array([2, 3]), run="r")
    assert later.fits(FOUR_FIT) == 3


@pytest.mark.parametrize("num_nodes", [2, 4, 9])
def test_with_other_nodes_each_starts_from_the_most_that_any_was_charged(
    folder: "LedgerFolder", num_nodes: int
) -> None:
    first = opened(folder, version(4))
    first.charge(FOUR_FIT, np.array([0, 1]), run="r")
    first.charge(FOUR_FIT, np.array([0]), run="r")
    later = opened(folder, version(num_nodes, ids="november"))
    assert later.num_nodes == num_nodes
    assert len(set(later.spent.tolist())) == 1
    assert later.fits(FOUR_FIT) == 2
    later.charge(FOUR_FIT, np.array([1]), run="r")  # from now on everybody pays
    assert later.fits(FOUR_FIT) == 1
    again = opened(folder, version(4))  # the first table again does not lower anything
    assert again.fits(FOUR_FIT) == 1
    assert (again.spent == accounts(folder.open())[0].spent).all()
    assert folder.open().verify() is None


def test_an_account_opened_before_the_nodes_changed_follows(folder: "LedgerFolder") -> None:
    early = opened(folder, version(4))
    opened(folder, version(6, ids="november")).charge(FOUR_FIT, np.array([5]), run="r")
    early.charge(FOUR_FIT, None, run="r")  # all nodes are all nodes, of either version
    assert early.fits(FOUR_FIT) == 2
    assert accounts(folder.open())[0].fits(FOUR_FIT) == 2


def test_tables_without_a_version_keep_their_size(folder: "LedgerFolder") -> None:
    folder.account()
    with pytest.raises(InputError, match="'g' has 4 nodes, got 5"):
        open_account(folder.open(), "g", num_nodes=5)


@pytest.mark.parametrize("simulated", [True, False])
def test_simulated_and_secret_noise_never_share_a_name(
    folder: "LedgerFolder", simulated: bool
) -> None:
    ledger = folder.open()
    account = open_account(ledger, "g", num_nodes=4, budget=BUDGET, simulated=simulated)
    account.charge(FOUR_FIT, None, run="r")
    head = ledger.head()
    with pytest.raises(InputError, match="use another name with --graph, or another ledger"):
        open_account(ledger, "g", num_nodes=4, budget=BUDGET, simulated=not simulated)
    assert ledger.head() == head
    open_account(ledger, "other", num_nodes=4, budget=BUDGET, simulated=not simulated)
    shown = {balance.graph: balance.simulated for balance in accounts(ledger)}
    assert shown == {"g": simulated, "other": not simulated}


# Entries.


def entry(facts: dict[str, Any], *, cost: float = 0.0, run: str = "r") -> Entry:
    return Entry(7, 0.0, "g", run, facts, cost, encode(None, 3))


def reserved(epsilon: float) -> Entry:
    cap = cap_for(budget=Budget(epsilon=epsilon, delta=1e-6))
    facts = Reservation(plan="certified", planned_epsilon=epsilon, releases=1, mu_squared=cap).facts
    return entry(facts)


def test_reservations_beyond_the_budget_are_not_booked() -> None:
    balance = Balance("g", num_nodes=3, budget=BUDGET)
    with pytest.raises(OverdrawnError, match="reservation of run r exceeds"):
        balance.book(reserved(1.1))
    balance.book(reserved(0.5))
    assert balance.reserved_epsilon() == pytest.approx(0.5, rel=1e-6)


def test_charges_beyond_the_reservation_of_their_run_are_not_booked() -> None:
    balance = Balance("g", num_nodes=3, budget=BUDGET)
    balance.book(reserved(0.5))
    event = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=2))
    with pytest.raises(BudgetError, match="Requested"):
        balance.refuse_if_over_budget(event, encode(None, 3), "r")
    with pytest.raises(OverdrawnError, match="Entry 7 exceeds"):
        balance.book(entry(dict(event.facts), cost=event.cost))


def test_a_pure_run_cannot_have_been_charged_more_than_it_reserved() -> None:
    balance = Balance("g", num_nodes=3, budget=BUDGET)
    event = PureRelease(epsilon=0.5, what="noisy edges")
    facts = Reservation(
        plan="certified",
        planned_epsilon=0.25,
        releases=1,
        mu_squared=event.cost,
        pure_epsilon=0.25,
    ).facts
    balance.book(entry(facts))
    with pytest.raises(OverdrawnError, match="Entry 7 exceeds"):
        balance.book(entry(dict(event.facts), cost=event.cost))
    balance.book(entry(dict(event.facts), cost=event.cost, run="another"))
    assert balance.spent_epsilon() == 0.5


def test_a_reservation_of_nothing_does_not_fix_the_cap(folder: "LedgerFolder") -> None:
    account = open_account(folder.open(), "g", num_nodes=4, budget=Budget(epsilon=8.0, delta=1e-6))
    whole = PureRelease(epsilon=4.0, what="noisy edges")
    pure = Reservation(
        plan="certified",
        planned_epsilon=4.0,
        releases=1,
        mu_squared=whole.cost,
        pure_epsilon=4.0,
    )
    account.reserve(pure, run="one")
    account.charge(whole, None, run="one")
    return_unused(account.ledger, run="one")
    account.reserve(pure, run="one")  # as a server does that is started again
    account.reserve(pure, run="two")
    account.charge(whole, None, run="two")
    assert account.spent_epsilon() == 8.0


def test_a_run_whose_reservation_was_returned_uses_nothing_unprotected(
    folder: "LedgerFolder",
) -> None:
    account = open_account(folder.open(), "g", num_nodes=4, budget=BUDGET)
    account.reserve(Reservation(plan="none"), run="raw")
    return_unused(account.ledger, run="raw")
    certified = Reservation(plan="certified", planned_epsilon=0.5, releases=1, mu_squared=1e-3)
    account.reserve(certified, run="certified")
    with pytest.raises(BudgetError, match="has returned its reservation"):
        account.note_unprotected(run="raw", plan="none")
