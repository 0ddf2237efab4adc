"""Accounting errors of other libraries, one test each, named after the library."""

import math
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.accounting.budget import Budget, NonPrivate
from vesper.privacy.accounting.gaussian import delta_of
from vesper.privacy.accounting.participation import cap_for, epsilon_for, noise_std_for
from vesper.privacy.events import ClippedRelease, Event, GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import Entry, format_head
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.ledger.store import Ledger

BUDGET = Budget(epsilon=1.0, delta=1e-6)
TWO_FIT = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=2))
EVENTS: list[Event] = [
    GaussianRelease(noise_std=700.0),
    GaussianRelease(noise_std=700.0, endpoint_shift=0.3),
    ClippedRelease(noise_std=700.0, row_norm=3.0),
    PureRelease(epsilon=2.0**-10, what="counts"),
]


def opened(folder: Path) -> Account:
    ledger = Ledger(folder / "ledger.sqlite", clock=lambda: 0.0)
    return open_account(ledger, "g", num_nodes=5, budget=BUDGET)


# Opacus stores the accountant in the checkpoint: a roll-back refunds what the peer has seen.


def test_opacus_a_restored_checkpoint_does_not_refund(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    opened(tmp_path).charge(TWO_FIT, None, run="r")
    for name in ("data_party.npz", "config.json"):  # all that a run can restore
        (tmp_path / "checkpoint" / name).write_bytes(b"old")
    opened(tmp_path).charge(TWO_FIT, None, run="r")
    shutil.copytree(tmp_path / "checkpoint", tmp_path, dirs_exist_ok=True)
    with pytest.raises(BudgetError):
        opened(tmp_path).charge(TWO_FIT, None, run="r")


def test_opacus_an_older_copy_of_the_ledger_does_not_refund(tmp_path: Path) -> None:
    account = opened(tmp_path)
    account.charge(TWO_FIT, None, run="r")
    account._ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = (tmp_path / "ledger.sqlite").read_bytes()
    account.charge(TWO_FIT, None, run="r")
    account._ledger.close()
    (tmp_path / "ledger.sqlite").write_bytes(old)
    with pytest.raises(VesperError, match="older than what was charged"):
        opened(tmp_path)


def test_opacus_an_older_copy_of_the_folder_does_not_contain_a_noted_head(tmp_path: Path) -> None:
    (tmp_path / "now").mkdir()
    account = opened(tmp_path / "now")
    account._ledger.close()
    shutil.copytree(tmp_path / "now", tmp_path / "copy")
    account = opened(tmp_path / "now")
    account.charge(TWO_FIT, None, run="r")
    head = account._ledger.head()
    account._ledger.close()
    sequence, digest = format_head(head).split(":")
    assert open_to_read(tmp_path / "now" / "ledger.sqlite").contains(int(sequence), digest)
    assert not open_to_read(tmp_path / "copy" / "ledger.sqlite").contains(int(sequence), digest)


# NVFlare resets its ledger at every start.


def test_nvflare_a_new_start_continues_from_what_is_spent(tmp_path: Path) -> None:
    for start in range(2):
        account = opened(tmp_path)
        assert account.releases == start
        account.charge(TWO_FIT, None, run=f"run {start}")
        account._ledger.close()
    with pytest.raises(BudgetError):
        opened(tmp_path).charge(TWO_FIT, None, run="run 2")


def test_nvflare_a_lost_ledger_is_not_recreated(tmp_path: Path) -> None:
    opened(tmp_path)._ledger.close()
    (tmp_path / "ledger.sqlite").unlink()
    with pytest.raises(VesperError, match="older than what was charged"):
        opened(tmp_path)


# SecretFlow computes an epsilon and discards it. (tests/cli/test_budget_command.py tests that
# `vesper budget show` prints every charge.)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.facts["kind"]))
def test_secretflow_every_receipt_has_an_entry_that_counts(tmp_path: Path, event: Event) -> None:
    account = opened(tmp_path)
    before = account.spent_epsilon()
    receipt = account.charge(event, None, run="r")
    last = list(account._ledger.entries())[-1]
    assert (last.sequence, last.facts) == (receipt.sequence, event.facts)
    assert last.cost > 0
    assert account.spent_epsilon() > before
    stored = accounts(open_to_read(tmp_path / "ledger.sqlite"))[0]
    assert (stored.releases, stored.spent_epsilon()) == (1, account.spent_epsilon())


# dp-accounting ignores the count for one class of events: composing 1000 costs as much as one.


def composed(
    event: Event, times: int, budget: Budget | None, *, after: Event | None = None
) -> Balance:
    balance = Balance("g", num_nodes=2, budget=budget)
    for k, each in enumerate(([after] if after else []) + [event] * times):
        facts = dict(each.facts)
        balance.book(Entry(k + 1, 0.0, "g", "r", facts, each.cost, encode(None, 2)))
    return balance


@given(times=st.integers(1, 60))
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.facts["kind"]))
@pytest.mark.parametrize("budget", [None, BUDGET], ids=["no budget", "budget"])
def test_dp_accounting_n_events_cost_n_times_one_for_every_class(
    event: Event, budget: Budget | None, times: int
) -> None:
    one, many = composed(event, 1, budget), composed(event, times, budget)
    assert many.pure == times * one.pure
    assert many.spent.tolist() == (times * one.spent).tolist()
    assert one.pure > 0 or one.spent.min() > 0
    if budget is not None:
        assert composed(event, 0, budget).fits(event) == times + many.fits(event)
    # and after a release, where counts are charged differently
    first = GaussianRelease(noise_std=900.0)
    base = composed(first, 1, budget).spent
    one, many = composed(event, 1, budget, after=first), composed(event, times, budget, after=first)
    assert many.pure == 0
    assert (many.spent - base).tolist() == (times * (one.spent - base)).tolist()
    assert (one.spent > base).all()


def test_dp_accounting_every_class_of_events_is_in_the_law_above() -> None:
    from vesper.privacy import events

    classes = {
        value
        for name, value in vars(events).items()
        if isinstance(value, type) and name.endswith("Release")
    }
    assert classes == {type(event) for event in EVENTS}


# GAP takes 1 as the sensitivity of an undirected edge, may calibrate to above the budget, and once
# ran without noise.


def test_gap_an_edge_has_two_ends() -> None:
    noise_std = noise_std_for(budget=BUDGET, releases=1)
    assert delta_of(mu=math.sqrt(2) / noise_std, epsilon=1.0) == pytest.approx(1e-6, rel=1e-6)
    assert delta_of(mu=math.sqrt(2) / (noise_std / math.sqrt(2)), epsilon=1.0) > 1e-4


@given(
    epsilon=st.floats(1e-3, 100),
    delta=st.sampled_from([1e-5, 1e-9, 1e-12]),
    releases=st.integers(1, 5000),
)
def test_gap_calibration_ends_on_the_safe_side(epsilon: float, delta: float, releases: int) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    noise_std = noise_std_for(budget=budget, releases=releases)
    spent = releases / Fraction(noise_std) ** 2
    cap = Fraction(cap_for(budget=budget))
    assert cap * Fraction(999, 1000) <= spent <= cap


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3, 1e12, 1e300])
def test_gap_no_finite_epsilon_comes_without_noise(tmp_path: Path, epsilon: float) -> None:
    assert noise_std_for(budget=Budget(epsilon=epsilon, delta=1e-6), releases=1) > 0
    assert epsilon_for(noise_std=0.0, releases=1, delta=1e-6) == math.inf
    with pytest.raises(InputError, match="NonPrivate"):
        noise_std_for(budget=Budget(epsilon=math.inf, delta=1e-6), releases=1)
    assert noise_std_for(budget=NonPrivate(), releases=1) == 0
    for nothing in (0.0, -1.0, math.nan, 1e-9):
        with pytest.raises(InputError, match="noise_std"):
            GaussianRelease(noise_std=nothing)


def test_a_ledger_emptied_by_hand_is_not_charged(tmp_path: Path) -> None:
    opened(tmp_path).charge(TWO_FIT, np.array([1, 2]), run="r")
    database = sqlite3.connect(tmp_path / "ledger.sqlite")
    database.executescript("DROP TRIGGER entries_last; DELETE FROM entries; DELETE FROM head;")
    database.close()
    with pytest.raises(VesperError):
        opened(tmp_path)
