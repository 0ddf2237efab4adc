"""Reservations and rounding: what was reserved can be charged, whatever the unit of the account."""

from contextlib import closing
from pathlib import Path

import pytest

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for, noise_std_within
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.reservation import Reservation, return_unused
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.store import Ledger

DELTA = 1e-6


def reserve_whole_cap(account: Account, *, epsilon: float, releases: int) -> GaussianRelease:
    """Reserve for a run as sessions do; return one of its releases."""
    cap = cap_for(budget=Budget(epsilon=epsilon, delta=DELTA), rows=account.relation.rows)
    account.reserve(
        Reservation(plan="certified", planned_epsilon=epsilon, releases=releases, mu_squared=cap),
        run="run",
    )
    return GaussianRelease(noise_std=noise_std_within(room=cap, cap=cap, releases=releases))


@pytest.mark.parametrize("whole", [8.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("releases", [2, 3, 4])
def test_a_small_part_of_a_large_budget(
    tmp_path: Path, whole: float, epsilon: float, releases: int
) -> None:
    """The unit follows the budget, and each release of the small run is rounded up to it."""
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        budget = Budget(epsilon=whole, delta=DELTA)
        account = open_account(ledger, "g", num_nodes=3, budget=budget)
        event = reserve_whole_cap(account, epsilon=epsilon, releases=releases)
        for _ in range(releases):
            account.charge(event, None, run="run")
        assert account.reservations["run"].units >= 0
        assert balance_of_run(ledger, "run").spent_epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.5 + 0.13 * k for k in range(20)])
def test_a_run_that_reserves_its_rest_a_second_time(tmp_path: Path, epsilon: float) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        budget = Budget(epsilon=epsilon, delta=DELTA)
        account = open_account(ledger, "g", num_nodes=3, budget=budget)
        for _ in range(3):
            event = reserve_whole_cap(account, epsilon=epsilon, releases=3)
            account.charge(event, None, run="run")
            assert return_unused(ledger, run="run")
        reserve_whole_cap(account, epsilon=epsilon, releases=3)
        balance = balance_of_run(ledger, "run")
        assert balance.spent_epsilon == pytest.approx(epsilon)
        assert balance.left_epsilon == pytest.approx(0.0, abs=1e-9)
        assert account.spent_epsilon() <= epsilon


def test_what_is_left_of_a_run_is_what_it_has_reserved_and_not_used(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        budget = Budget(epsilon=4.0, delta=DELTA)
        account = open_account(ledger, "g", num_nodes=3, budget=budget)
        event = reserve_whole_cap(account, epsilon=2.0, releases=2)
        assert balance_of_run(ledger, "run").left_epsilon == pytest.approx(2.0)
        account.charge(event, None, run="run")
        balance = balance_of_run(ledger, "run")
        assert balance.spent_epsilon + balance.left_epsilon == pytest.approx(2.0)
        assert 0 < balance.left_epsilon < 1
        return_unused(ledger, run="run")
        assert balance_of_run(ledger, "run").left_epsilon == 0.0
