"""Counts are charged equally to every graph of a ledger."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.reader import DEGREES, epsilon_of_counts
from vesper.privacy.ledger.store import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as opened:
        yield opened


def count(ledger: Ledger, graph: str, epsilon: float, what: str = DEGREES) -> None:
    account = open_account(ledger, graph, num_nodes=4)
    account.charge(PureRelease(epsilon=epsilon, what=what), None, run="degrees")


def test_the_graph_with_the_most_counts_is_decisive(ledger: Ledger) -> None:
    assert epsilon_of_counts(ledger) == 0
    count(ledger, "a", 0.25)
    count(ledger, "b", 0.125)
    count(ledger, "a", 0.5, f"{DEGREES}, scale of the paper")
    count(ledger, "b", 3.0, "randomised edges")  # not a degree histogram
    assert epsilon_of_counts(ledger) == Fraction(3, 4)


def test_counts_after_the_first_charge_of_a_run_do_not_affect_it(ledger: Ledger) -> None:
    count(ledger, "a", 0.25)
    open_account(ledger, "a", num_nodes=4).charge(GaussianRelease(noise_std=9.0), None, run="r")
    count(ledger, "b", 0.5)
    assert epsilon_of_counts(ledger, before_run="r") == Fraction(1, 4)
    assert (
        epsilon_of_counts(ledger, before_run="another")
        == epsilon_of_counts(ledger)
        == Fraction(1, 2)
    )
