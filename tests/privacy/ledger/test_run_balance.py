"""The balance sent to a peer does not depend on other charges for the same edges."""

from pathlib import Path

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import accounts, open_account
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.store import Ledger


def test_the_balance_of_a_run_covers_its_own_charges_and_all_counts(tmp_path: Path) -> None:
    budget = Budget(epsilon=4.0, delta=1e-6)
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    counts = PureRelease(epsilon=1.0, what=DEGREES)
    open_account(ledger, "b", num_nodes=4).charge(counts, None, run="degrees")
    for graph, runs in (("a", ("r", "s")), ("c", ("r",))):
        for run in runs:
            open_account(ledger, graph, num_nodes=4, budget=budget).charge(
                GaussianRelease(noise_std=9.0), None, run=run
            )
    shared, alone = (balance_of_run(ledger, graph, "r") for graph in ("a", "c"))
    assert shared.spent_epsilon() == alone.spent_epsilon() > 1.0
    assert shared.left_epsilon() == alone.left_epsilon()
    (whole,) = (each for each in accounts(ledger) if each.graph == "a")
    assert whole.spent_epsilon() != shared.spent_epsilon()
    ledger.close()
