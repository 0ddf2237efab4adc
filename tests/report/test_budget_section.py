"""Charges of one run: what other runs were charged, under any name, is on no page."""

from contextlib import closing
from pathlib import Path

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.store import Ledger
from vesper.report.budget_section import RunCharges, run_charges_of
from vesper.report.sections import budget_section

EVENT = GaussianRelease(noise_std=20.0)
COUNTS = PureRelease(epsilon=0.25, what="degree histogram")


def charges_with(
    folder: Path,
    *,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
    unprotected: bool = False,
) -> RunCharges:
    """Charges of run `own` in a ledger with other runs, given as names of graphs by run."""
    folder.mkdir()
    with closing(Ledger(folder / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        for run, graph in (before or {}).items():
            open_account(ledger, graph, num_nodes=4).charge(COUNTS, None, run=run)
        account = open_account(ledger, "g", num_nodes=4, budget=Budget(epsilon=1.0, delta=1e-6))
        for _ in range(2):
            account.charge(EVENT, None, run="own")
        for run, graph in (after or {}).items():
            open_account(ledger, graph, num_nodes=4).charge(EVENT, None, run=run)
        if unprotected:
            account.note_unprotected(run="raw", plan="none")
        found = run_charges_of(ledger, run="own")
    assert found is not None
    return found


def test_charges_of_other_runs_change_nothing(tmp_path: Path) -> None:
    alone = charges_with(tmp_path / "alone")
    assert len(alone.charges) == 2
    assert 0 < alone.spent_epsilon < 1
    assert 0.5 < alone.best_guess < 0.75
    others = {
        "counted": charges_with(tmp_path / "counted", before={"degrees": "g"}),
        "elsewhere": charges_with(tmp_path / "elsewhere", before={"degrees": "other"}),
        "later": charges_with(tmp_path / "later", after={"second": "g", "third": "h"}),
        "unprotected": charges_with(tmp_path / "unprotected", unprotected=True),
    }
    for name, found in others.items():
        assert found == alone, name
        assert budget_section(found) == budget_section(alone)


def test_a_page_has_no_head_total_or_number_of_an_entry(tmp_path: Path) -> None:
    section = budget_section(charges_with(tmp_path / "one", before={"degrees": "g"}))
    with closing(Ledger(tmp_path / "one" / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        sequence, digest = ledger.head()
        numbers = [entry.sequence for entry in ledger.entries() if entry.run == "own"]
    assert digest.hex()[:16] not in section
    assert f"{sequence}:" not in section
    assert numbers == [5, 6]
    shown = [f"{number}. 1970" in section for number in (1, 2, *numbers)]
    assert shown == [True, True, False, False]
    assert "degree histogram" not in section
    assert "left" not in section.lower()


def test_a_run_that_was_charged_nothing_has_no_section(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        open_account(ledger, "g", num_nodes=4).charge(COUNTS, None, run="degrees")
        assert run_charges_of(ledger, run="own") is None
