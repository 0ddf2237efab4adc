"""Fixtures: a folder with a ledger and its account, and charges without a file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import Event
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.ledger.store import Ledger

BUDGET = Budget(epsilon=1.0, delta=1e-6)


class LedgerFolder:
    """Opens `ledger.sqlite` in a folder, in the ways that tests need."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.sqlite"
        self.note = folder / "ledger.sqlite.head"

    def open(self) -> Ledger:
        return Ledger(self.path, clock=lambda: 12.5)

    def open_read_only(self) -> LedgerReader:
        return open_to_read(self.path)

    def with_entries(self, entries: int = 2) -> Ledger:
        """A ledger with its key entry and this many more."""
        ledger = self.open()
        for k in range(entries):
            self.append(ledger, cost=k, k=k)
        return ledger

    @staticmethod
    def append(ledger: Ledger, *, cost: float, **facts: float) -> None:
        with ledger.transaction():
            ledger.append(
                graph="g", run="r", facts={"kind": "x", **facts}, cost=cost, encoded_receivers=b"A"
            )

    def raw(self) -> sqlite3.Connection:
        """A plain SQLite connection, without the settings of a ledger."""
        return sqlite3.connect(self.path)

    def account(self, budget: Budget | None = BUDGET) -> Account:
        """The account of a graph of four nodes."""
        return open_account(self.open(), "g", num_nodes=4, budget=budget)


@pytest.fixture
def folder(tmp_path: Path) -> LedgerFolder:
    return LedgerFolder(tmp_path)


@pytest.fixture
def folder_at() -> Callable[[Path], LedgerFolder]:
    """For tests that need several folders, or one in another place."""
    return LedgerFolder


@pytest.fixture(scope="session")
def charged() -> Callable[..., Balance]:
    """Charge events as an account does, but without a file."""

    def charge(balance: Balance, event: Event, times: int = 1) -> Balance:
        everyone = encode(None, len(balance.spent))
        for _ in range(times):
            balance.refuse_if_over_budget(event, everyone)
            facts = dict(event.facts)
            balance.book(Entry(balance.releases + 1, 0.0, "g", "r", facts, event.cost, everyone))
        return balance

    return charge
