"""A numbered release is charged once, drawn once, and stored before it may leave."""

from typing import Any

import pytest

from vesper.errors import BudgetError
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account import StoredRelease
from vesper.privacy.ledger.receipt import Receipt, encode

EVENT = GaussianRelease(noise_std=10.0)
EVERYONE = encode(None, 4)


def once(account: Any, number: int = 0, run: str = "r", event: GaussianRelease = EVENT) -> Any:
    return account.charge_once(event, None, run=run, number=number)


def test_a_second_process_is_not_charged_again(folder: Any) -> None:
    account = folder.account()
    first = once(account)
    assert isinstance(first, Receipt)
    spent = account.spent_mu_squared
    account.mark_stored(first, digest="d1")
    again = folder.account()
    assert once(again) == StoredRelease(digest="d1")
    assert again.spent_mu_squared == spent
    assert again.charges_of("r") == 1


def test_a_charge_without_stored_values_gives_its_receipt_again_at_no_cost(folder: Any) -> None:
    first = once(folder.account())
    account = folder.account()  # the process died before it stored what it drew
    again = once(account)
    assert isinstance(again, Receipt)
    assert again.sequence == first.sequence
    assert account.charges_of("r") == 1
    again.spend(event=EVENT, receivers=EVERYONE, graph="g")
    account.mark_stored(again, digest="d2")
    assert once(folder.account()) == StoredRelease(digest="d2")


def test_one_of_two_processes_that_draw_at_the_same_time_is_refused(folder: Any) -> None:
    one, other = folder.account(), folder.account()
    first, second = once(one), once(other)
    other.mark_stored(second, digest="theirs")
    with pytest.raises(BudgetError, match="drawn by another process"):
        one.mark_stored(first, digest="mine")
    assert once(folder.account()) == StoredRelease(digest="theirs")


def test_a_release_charged_as_something_else_is_refused(folder: Any) -> None:
    account = folder.account()
    once(account)
    with pytest.raises(BudgetError, match="Settings have changed"):
        once(account, event=GaussianRelease(noise_std=11.0))
    with pytest.raises(BudgetError, match="Settings have changed"):
        account.charge_once(EVENT, [0, 1], run="r", number=0)


def test_number_and_run_together_identify_a_release(folder: Any) -> None:
    account, little = folder.account(), GaussianRelease(noise_std=40.0)
    pairs = [(number, run) for number in (0, 1) for run in ("r", "s")]
    sequences = {once(account, *pair, event=little).sequence for pair in pairs}
    assert len(sequences) == 4
    assert (account.charges_of("r"), account.charges_of("s")) == (2, 2)


def test_a_charge_that_does_not_fit_is_refused_and_leaves_no_trace(folder: Any) -> None:
    account = folder.account()
    with pytest.raises(BudgetError, match="does not allow"):
        once(account, event=GaussianRelease(noise_std=0.1))
    assert account.charges_of("r") == 0
    assert isinstance(once(account), Receipt)


def test_storing_a_release_costs_nothing_and_is_part_of_the_chain(folder: Any) -> None:
    account = folder.account()
    account.mark_stored(once(account), digest="d")
    ledger = folder.open_read_only()
    assert ledger.verify() is None
    last = list(ledger.entries())[-1]
    assert (last.facts["kind"], last.facts["digest"], last.cost) == ("stored", "d", 0.0)
