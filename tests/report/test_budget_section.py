"""Charges of a run, and the best guess after everything that its graph was used for."""

import math
from contextlib import closing
from pathlib import Path

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.store import Ledger
from vesper.report.budget_section import run_charges_of


def test_after_use_without_a_guarantee_a_guess_can_always_be_right(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        account = open_account(ledger, "g", num_nodes=4, budget=Budget(epsilon=1.0, delta=1e-6))
        event = GaussianRelease(noise_std=account.noise_std_for(releases=1))
        account.charge(event, None, run="certified")
        before = run_charges_of(ledger, run="certified")
        account.note_unprotected(run="raw", plan="none")
        after = run_charges_of(ledger, run="certified")
    assert before is not None
    assert after is not None
    assert before.best_guess < 0.75
    assert (after.best_guess, after.spent_epsilon, after.left_epsilon) == (1.0, math.inf, 0.0)
    assert len(after.charges) == 1
