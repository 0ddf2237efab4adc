"""What a run tells others is about its own charges only, whatever else was charged."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for, noise_std_for
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.reservation import Reservation, return_unused
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.store import Ledger

BUDGET = Budget(epsilon=4.0, delta=1e-6)
PLANNED = Budget(epsilon=1.0, delta=1e-6)
EVENT = GaussianRelease(noise_std=noise_std_for(budget=PLANNED, releases=3))
WHOLE_RUN = Reservation(
    plan="certified", planned_epsilon=1.0, releases=3, mu_squared=cap_for(budget=PLANNED)
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as opened:
        yield opened


def account(ledger: Ledger, graph: str = "g") -> Account:
    return open_account(ledger, graph, num_nodes=4, budget=BUDGET)


def test_charges_of_other_runs_and_graphs_change_nothing(ledger: Ledger) -> None:
    """Two worlds: in one, something else is charged to the same name before, between and after."""
    for graph in ("alone", "shared"):
        opened = account(ledger, graph)
        if graph == "shared":
            opened.charge(PureRelease(epsilon=0.5, what="degree histogram"), None, run="degrees")
            opened.charge(GaussianRelease(noise_std=20.0), None, run="other")
        opened.reserve(WHOLE_RUN, run=f"run of {graph}")
        for _ in range(2):
            opened.charge(EVENT, None, run=f"run of {graph}")
            if graph == "shared":
                opened.charge(GaussianRelease(noise_std=50.0), None, run="other")
    alone, shared = (balance_of_run(ledger, f"run of {name}") for name in ("alone", "shared"))
    assert len(alone.charges) == len(shared.charges) == 2
    for field in ("spent_epsilon", "left_epsilon", "spent_mu_squared", "pure", "planned_epsilon"):
        assert getattr(alone, field) == getattr(shared, field), field
    whole = {each.graph: each.spent_epsilon() for each in accounts(ledger)}
    assert whole["alone"] < whole["shared"]


def test_spent_and_left_add_up_to_what_was_planned(ledger: Ledger) -> None:
    opened = account(ledger)
    opened.reserve(WHOLE_RUN, run="r")
    for spent in range(4):
        balance = balance_of_run(ledger, "r")
        assert balance.spent_epsilon + balance.left_epsilon == pytest.approx(1.0, rel=1e-6)
        assert balance.planned_epsilon == 1.0
        assert len(balance.charges) == spent
        if spent < 3:
            opened.charge(EVENT, None, run="r")
    assert balance.left_epsilon == pytest.approx(0, abs=1e-6)
    assert balance.spent_epsilon == pytest.approx(1.0, rel=1e-3)


def test_nothing_is_left_once_it_was_returned(ledger: Ledger) -> None:
    opened = account(ledger)
    opened.reserve(WHOLE_RUN, run="r")
    opened.charge(EVENT, None, run="r")
    before = balance_of_run(ledger, "r")
    assert return_unused(ledger, run="r")
    after = balance_of_run(ledger, "r")
    assert (after.spent_epsilon, after.planned_epsilon) == (before.spent_epsilon, 1.0)
    assert before.left_epsilon > after.left_epsilon == 0


def test_a_pure_release_costs_its_epsilon(ledger: Ledger) -> None:
    event = PureRelease(epsilon=0.75, what="noisy edges")
    reserved = Reservation(
        plan="certified",
        planned_epsilon=1.0,
        releases=1,
        mu_squared=PureRelease(epsilon=1.0, what="noisy edges").cost,
        pure_epsilon=1.0,
    )
    opened = account(ledger)
    opened.reserve(reserved, run="r")
    opened.charge(event, None, run="r")
    balance = balance_of_run(ledger, "r")
    assert (balance.spent_epsilon, balance.pure) == (0.75, 0.75)
    assert balance.left_epsilon == pytest.approx(0.25)


def test_a_run_that_was_charged_nothing_has_zeros(ledger: Ledger) -> None:
    account(ledger).charge(EVENT, None, run="another")
    balance = balance_of_run(ledger, "r")
    numbers = (balance.spent_epsilon, balance.left_epsilon, balance.spent_mu_squared, balance.pure)
    assert max(numbers) == 0
    assert balance.planned_epsilon is None
    assert not balance.charges


def test_a_notebook_shows_what_the_run_spent(ledger: Ledger) -> None:
    shown = balance_of_run(ledger, "unknown")._repr_html_()
    assert "Budget of a run" in shown
    assert "planned epsilon" not in shown, "nothing is certified"
