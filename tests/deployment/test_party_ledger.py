"""Of several runs at once on one budget, exactly those that fit finish; others contact nobody."""

from contextlib import closing
from math import floor
from pathlib import Path

import pytest
from tests.fixtures.two_worlds import RING, World, run_at_once, write_history

from vesper.deployment.party_ledger import open_party_ledger
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.reservation import open_runs
from vesper.privacy.ledger.store import Ledger

RUN_EPSILON, DELTA = 2.0, 1e-4
SETTINGS = f"epsilon = {RUN_EPSILON}\ndelta = {DELTA}\nhops = 2\n"
NAME = "payments-of-all"


def make_runs(root: Path, *, count: int, budget: float) -> list[World]:
    """Make runs in folders of their own, which charge one name in one ledger."""
    history = write_history(root / "history")
    shared = root / "shared.sqlite"
    with closing(Ledger(shared, clock=lambda: 0.0)) as ledger:
        open_account(ledger, NAME, num_nodes=1, budget=Budget(epsilon=budget, delta=DELTA))
    runs = []
    for number in range(count):
        run = World(root / f"run-{number}", edges=RING, history=history)
        run.configure(privacy=SETTINGS)
        run.change("data", 'ledger = "ledger.sqlite"', f'ledger = "{shared}"')
        run.change("data", 'graph = "payments-2026-11"', f'graph = "{NAME}"')
        runs.append(run)
    return runs


def fitting(budget: float) -> int:
    """Number of runs that fit, before what rounding takes."""
    caps = [cap_for(budget=Budget(epsilon=each, delta=DELTA)) for each in (budget, RUN_EPSILON)]
    return floor(caps[0] / caps[1] * (1 - 1e-9))


@pytest.mark.parametrize(("count", "budget"), [(3, 2.5), (4, 4.0)])
def test_concurrent_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, budget: float
) -> None:
    runs = make_runs(tmp_path, count=count, budget=budget)
    run_at_once(runs, monkeypatch)
    finished = [run for run in runs if run.seen.outcomes[0] == "data finished"]
    refused = [run for run in runs if run.seen.outcomes[0].startswith("data BudgetError")]
    assert 0 < len(finished) == fitting(budget) < count
    assert len(finished) + len(refused) == count
    for run in refused:
        assert run.seen.connections == ["label is there"]
        assert run.seen.frames == {}
    with closing(open_party_ledger(runs[0].config("data"))) as ledger:
        assert ledger.verify() is None
        assert open_runs(ledger) == {}
        (balance,) = accounts(ledger)
        assert balance.spent_epsilon() <= budget
        assert balance.releases == 3 * len(finished)  # the probe and two hops
