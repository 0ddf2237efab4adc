"""Proof that an event was charged: what `mechanism.release` asks for before it reads an edge."""

import os

from vesper.errors import BudgetError
from vesper.privacy.events import Event

_SEAL = object()
"""Held by `account.py` alone: a receipt cannot be made by accident."""


class Receipt:
    """One charged event, good for one release. Made by `Account.charge` after the entry is on disk.

    Args:
        event: what was charged.
        receivers: to whom, as the ledger wrote it.
        graph: fingerprint of the graph.
        sequence: number of the ledger entry.
        seal: known to the account only.
    """

    def __init__(
        self, *, event: Event, receivers: bytes, graph: str, sequence: int, seal: object
    ) -> None:
        if seal is not _SEAL:
            raise BudgetError("A receipt is made by charging a ledger, not by hand.")
        self.event, self.receivers, self.graph = event, receivers, graph
        self.sequence = sequence
        self._process = os.getpid()
        self._uses = [True]  # popped by the first to spend it, whatever the threads

    def spend(self, *, event: Event, receivers: bytes, graph: str) -> None:
        """Use the receipt up for exactly what was charged; anything else, or twice, is refused."""
        if (event, receivers, graph) != (self.event, self.receivers, self.graph):
            raise BudgetError("The receipt is for another release; charge this one.")
        if os.getpid() != self._process:
            raise BudgetError("A receipt is good in the process that charged, not in a fork of it.")
        try:
            self._uses.pop()
        except IndexError:
            raise BudgetError(
                f"Receipt {self.sequence} was used already; charge a new release."
            ) from None

    def __reduce__(self) -> str:
        raise TypeError("a receipt is never copied or saved: it would be good twice")
