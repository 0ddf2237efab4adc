"""Reservations: one entry sets a run's part aside, charges draw on it, the rest is returned."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for, noise_std_for
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.reservation import (
    Reservation,
    last_reservation,
    open_runs,
    reservation_of,
    return_unused,
)

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

BUDGET = Budget(epsilon=1.0, delta=1e-6)
HALF = Budget(epsilon=0.5, delta=1e-6)
TWO_FIT = GaussianRelease(noise_std=noise_std_for(budget=HALF, releases=2))
UNCERTIFIED = Reservation(plan="none")


def gaussian(budget: Budget, releases: int = 2) -> Reservation:
    return Reservation(
        plan="certified",
        planned_epsilon=budget.epsilon,
        releases=releases,
        mu_squared=cap_for(budget=budget),
    )


def pure(epsilon: float) -> Reservation:
    cost = PureRelease(epsilon=epsilon, what="noisy edges").cost
    return Reservation(
        plan="certified",
        planned_epsilon=epsilon,
        releases=1,
        mu_squared=cost,
        pure_epsilon=epsilon,
    )


def noisy_edges(epsilon: float) -> PureRelease:
    return PureRelease(epsilon=epsilon, what="noisy edges")


def test_what_is_reserved_is_nobody_elses(folder: "LedgerFolder") -> None:
    folder.account().reserve(gaussian(BUDGET), run="mine")
    other = folder.account()
    assert other.spent_epsilon() == 0
    assert other.reserved_epsilon() == pytest.approx(1.0, rel=1e-6)
    assert other.fits(GaussianRelease(noise_std=1024.0)) == 0
    for refused in (
        lambda: other.charge(GaussianRelease(noise_std=1024.0), None, run="degrees"),
        lambda: other.charge(noisy_edges(0.001), None, run="degrees"),
        lambda: other.reserve(gaussian(Budget(epsilon=0.01, delta=1e-6)), run="theirs"),
        lambda: other.reserve(pure(0.01), run="theirs"),
    ):
        before = folder.open().head()
        with pytest.raises(BudgetError, match="reserved for runs: 1"):
            refused()
        assert folder.open().head() == before


def test_charges_draw_on_the_reservation_and_nothing_else_can_make_them_fail(
    folder: "LedgerFolder",
) -> None:
    mine, other = folder.account(), folder.account()
    mine.reserve(gaussian(HALF), run="mine")
    spent = 0
    while True:  # everything that is left is spent by others between the releases
        try:
            other.charge(GaussianRelease(noise_std=40.0), None, run="other")
        except BudgetError:
            break
        spent += 1
    assert spent > 10
    for _ in range(2):
        mine.charge(TWO_FIT, None, run="mine")
    with pytest.raises(BudgetError, match="Requested"):
        mine.charge(TWO_FIT, None, run="mine")
    assert mine.reserved_epsilon() == pytest.approx(0, abs=1e-9)
    assert 0.99 < accounts(folder.open())[0].spent_epsilon() <= 1


def test_the_rest_is_returned_once_and_can_be_reserved_by_another(folder: "LedgerFolder") -> None:
    folder.account().reserve(gaussian(BUDGET), run="first")
    folder.account().charge(TWO_FIT, None, run="first")
    ledger = folder.open()
    assert open_runs(ledger) == {"first": "g"}
    assert return_unused(ledger, run="first")
    assert open_runs(ledger) == {}
    assert not return_unused(ledger, run="first")
    assert not return_unused(ledger, run="never started")
    account = folder.account()
    assert account.reserved_epsilon() == 0
    assert 0 < account.spent_epsilon() < 0.5
    account.reserve(gaussian(HALF), run="second")
    kinds = [entry.facts["kind"] for entry in ledger.entries()]
    assert kinds.count("returned") == 1
    assert ledger.verify() is None


def test_a_resumed_run_has_its_reservation_already(folder: "LedgerFolder") -> None:
    reserved = folder.account().reserve(gaussian(BUDGET), run="r")
    head = folder.open().head()
    assert folder.account().reserve(gaussian(HALF, releases=9), run="r") == reserved
    assert folder.open().head() == head


def test_a_run_that_reserves_again_reserves_what_it_has_not_spent(folder: "LedgerFolder") -> None:
    folder.account().reserve(gaussian(BUDGET), run="r")
    event = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=2))
    folder.account().charge(event, None, run="r")
    return_unused(folder.open(), run="r")
    again = folder.account().reserve(gaussian(BUDGET), run="r")
    assert again.planned_epsilon == 1.0  # noise is planned as before
    assert again.mu_squared == pytest.approx(cap_for(budget=BUDGET) / 2, rel=1e-9)
    account = folder.account()
    account.charge(event, None, run="r")
    assert 0.999 < account.spent_epsilon() <= 1


def test_all_planned_releases_fit_whatever_rounding_does(folder: "LedgerFolder") -> None:
    for releases in (1, 3, 7):
        run = f"{releases} releases"
        budget = Budget(epsilon=0.3, delta=1e-6)
        account = folder.account()
        account.reserve(gaussian(budget, releases=releases), run=run)
        noise_std = noise_std_for(budget=budget, releases=releases)
        for _ in range(releases):
            account.charge(GaussianRelease(noise_std=noise_std), None, run=run)
        return_unused(folder.open(), run=run)
    assert folder.account().spent_epsilon() <= 1


def test_a_pure_reservation_is_in_terms_of_epsilon(folder: "LedgerFolder") -> None:
    account = folder.account()
    account.reserve(pure(0.75), run="r")
    assert account.left_pure_epsilon == 0.25
    account.charge(noisy_edges(0.25), None, run="degrees")  # adds up purely, as nothing else is due
    with pytest.raises(BudgetError, match=r"\(epsilon\)"):
        account.charge(noisy_edges(0.76), None, run="r")
    with pytest.raises(BudgetError, match="epsilon at delta"):
        account.charge(GaussianRelease(noise_std=1024.0), None, run="r")
    account.charge(noisy_edges(0.75), None, run="r")
    assert account.spent_epsilon() == 1
    assert folder.account().spent_epsilon() == 1


def test_a_pure_reservation_stays_pure_though_others_are_charged_mu(folder: "LedgerFolder") -> None:
    account = folder.account()
    account.reserve(pure(0.5), run="r")
    account.charge(GaussianRelease(noise_std=50.0), None, run="other")
    account.charge(noisy_edges(0.5), None, run="r")
    assert account.pure == 0.5
    assert account.spent_epsilon() <= 1


def test_after_gaussian_releases_a_pure_run_reserves_its_mu(folder: "LedgerFolder") -> None:
    account = folder.account(Budget(epsilon=8.0, delta=1e-6))
    account.charge(GaussianRelease(noise_std=20.0), None, run="other")
    account.reserve(pure(1.0), run="r")
    assert not account.reservations["r"].is_pure
    account.charge(noisy_edges(1.0), None, run="r")
    assert account.pure == 0


def test_pure_and_gaussian_reservations_together_stay_within_the_budget(
    folder: "LedgerFolder",
) -> None:
    account = folder.account()
    account.reserve(pure(0.5), run="pure")
    account.reserve(gaussian(HALF), run="gaussian")
    with pytest.raises(BudgetError):
        account.reserve(pure(0.1), run="third")
    for _ in range(2):
        account.charge(TWO_FIT, None, run="gaussian")
    account.charge(noisy_edges(0.5), None, run="pure")
    assert 0.999 < account.spent_epsilon() <= 1


def test_a_budget_may_be_larger_than_a_run(folder: "LedgerFolder") -> None:
    """Runs at a half of the budget each: two fit, as two budgets of a half add up to less."""
    folder.account(Budget(epsilon=1.0, delta=1e-6))
    for run in ("one", "two"):
        folder.account(HALF).reserve(gaussian(HALF), run=run)
    assert folder.account(None).budget == BUDGET
    assert folder.account(None).reserved_epsilon() < 1
    with pytest.raises(BudgetError, match="Requested"):
        folder.account(None).reserve(gaussian(BUDGET), run="three")
    with pytest.raises(InputError, match="already has a budget of epsilon 1"):
        folder.account(Budget(epsilon=1.5, delta=1e-6))
    with pytest.raises(InputError, match="delta 1e-06 for one edge, got epsilon 1, delta 1e-07"):
        folder.account(Budget(epsilon=1.0, delta=1e-7))


# Runs that certify nothing.


def test_a_certified_run_that_has_started_excludes_uncertified_ones(folder: "LedgerFolder") -> None:
    folder.account().reserve(gaussian(HALF), run="certified run")
    head = folder.open().head()
    with pytest.raises(BudgetError, match="reserved for run certified run") as caught:
        folder.account(None).reserve(UNCERTIFIED, run="raw")
    assert "vesper budget return" in str(caught.value)
    assert folder.open().head() == head
    return_unused(folder.open(), run="certified run")
    folder.account(None).reserve(UNCERTIFIED, run="raw")


def test_an_uncertified_run_that_has_started_excludes_certified_ones(
    folder: "LedgerFolder",
) -> None:
    account = folder.account(None)
    account.reserve(UNCERTIFIED, run="raw")
    account.reserve(Reservation(plan="paper"), run="another raw one")
    with pytest.raises(BudgetError, match="in use by run raw, which certifies nothing"):
        folder.account().reserve(gaussian(HALF), run="certified run")
    for run in ("raw", "another raw one"):
        return_unused(folder.open(), run=run)
    folder.account().reserve(gaussian(HALF), run="certified run")  # neither has read an edge


def test_once_edges_were_used_returning_does_not_help(folder: "LedgerFolder") -> None:
    account = folder.account()
    account.reserve(UNCERTIFIED, run="raw")
    account.note_unprotected(run="raw", plan="none")
    return_unused(folder.open(), run="raw")
    with pytest.raises(BudgetError, match="without a guarantee by run raw"):
        folder.account().reserve(gaussian(HALF), run="certified run")


def test_an_uncertified_reservation_sets_nothing_aside(folder: "LedgerFolder") -> None:
    account = folder.account()
    account.reserve(UNCERTIFIED, run="raw")
    account.charge(TWO_FIT, np.array([1]), run="raw")  # an ordinary charge, and it stays readable
    (balance,) = accounts(folder.open())
    assert (balance.releases, balance.reserved_epsilon()) == (1, 0)


# Entries.


def test_the_last_reservation_is_found_though_it_was_returned(folder: "LedgerFolder") -> None:
    account = folder.account()
    account.reserve(gaussian(HALF), run="r")
    return_unused(folder.open(), run="r")
    account.reserve(gaussian(Budget(epsilon=0.25, delta=1e-6)), run="s")
    entries = list(folder.open().entries())
    assert last_reservation(entries, run="r") == gaussian(HALF)
    assert last_reservation(entries, run="none") is None


@pytest.mark.parametrize("reservation", [gaussian(HALF), pure(0.5), UNCERTIFIED])
def test_reservations_are_read_back(reservation: Reservation) -> None:
    assert reservation_of(reservation.facts) == reservation


@pytest.mark.parametrize(
    "change",
    [{"mu_squared": -1.0}, {"pure_epsilon": -0.1}, {"mu_squared": "1"}, {"plan": 3}],
)
def test_other_facts_are_not_reservations(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match="Expected a reservation"):
        reservation_of({**gaussian(HALF).facts, **change})
