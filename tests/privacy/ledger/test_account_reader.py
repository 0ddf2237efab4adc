"""Balances read from a ledger: by name, oldest first, equal to those of open accounts."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.account_reader import accounts, refuse_if_spent, terms_of
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.relation import EdgeRelation, NodeRelation

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def test_balances_are_those_of_the_open_accounts_oldest_first(folder: "LedgerFolder") -> None:
    ledger = folder.open()
    opened = {
        name: open_account(ledger, name, num_nodes=4, budget=budget)
        for name, budget in (("z", BUDGET), ("a", None), ("m", Budget(epsilon=3.0, delta=1e-5)))
    }
    opened["z"].charge(PureRelease(epsilon=0.25, what="degree histogram"), None, run="degrees")
    opened["z"].reserve(
        Reservation(plan="certified", planned_epsilon=0.5, releases=2, mu_squared=0.001), run="r"
    )
    opened["a"].charge(GaussianRelease(noise_std=9.0), np.array([1]), run="r")
    read = accounts(folder.open_read_only())
    assert [balance.graph for balance in read] == ["z", "a", "m"]
    for balance in read:
        account = opened[balance.graph]
        assert (balance.budget, balance.relation) == (account.budget, account.relation)
        assert (balance.spent == account.spent).all()
        assert balance.spent_epsilon() == account.spent_epsilon()
        assert balance.reserved_epsilon() == account.reserved_epsilon()
        assert balance.left_epsilon() == account.left_epsilon()
        assert list(balance.reservations) == list(account.reservations)


def test_a_new_ledger_has_no_accounts(folder: "LedgerFolder") -> None:
    assert accounts(folder.open()) == []


@pytest.mark.parametrize("relation", [EdgeRelation(), NodeRelation(max_degree=9, row_norm=3.0)])
def test_terms_are_read_back(relation: EdgeRelation | NodeRelation) -> None:
    facts = {"kind": "budget", "epsilon": 2.0, "delta": 1e-7, **relation.facts}
    assert terms_of({"budget": facts}) == (Budget(epsilon=2.0, delta=1e-7), relation)
    assert terms_of({"graph": {"kind": "graph"}}) == (None, None)


@pytest.mark.parametrize(
    "change", [{"epsilon": "2"}, {"epsilon": -1.0}, {"delta": None}, {"relation": "friend"}]
)
def test_damaged_terms_are_named_with_the_ledger(
    folder: "LedgerFolder", tamper: Callable[..., None], change: dict[str, object]
) -> None:
    folder.account()
    facts = {"kind": "budget", "epsilon": 1.0, "delta": 1e-6, "relation": "edge", **change}
    tamper(
        folder.path, "UPDATE entries SET facts = ? WHERE facts LIKE '%budget%'", json.dumps(facts)
    )
    with pytest.raises(InputError, match=r"ledger\.sqlite: the account of graph g was not written"):
        accounts(folder.open_read_only())


def test_a_budget_cannot_be_set_below_what_was_spent(folder: "LedgerFolder") -> None:
    account = folder.account(None)
    account.charge(PureRelease(epsilon=0.5, what="degree histogram"), None, run="degrees")
    entries = [entry for entry in folder.open().entries() if entry.graph]
    refuse_if_spent(entries, 4, BUDGET, EdgeRelation())
    with pytest.raises(BudgetError, match=r"(?s)Requested:  0\.5.*Remaining:  0\.4.*Nothing was"):
        refuse_if_spent(entries, 4, Budget(epsilon=0.4, delta=1e-6), EdgeRelation())
