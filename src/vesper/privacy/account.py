"""What one graph has spent, node by node, and the filter that refuses (claim L-FILTER).

    spent[v] = sum of the costs of all events that had v as a receiver,   spent[v] <= cap for all v

    charge:  lock -> replay what others wrote -> would some receiver pass the cap?
             yes: refuse, write nothing      no: write, sync to disk, hand out a receipt

Budgets belong to graphs, not to runs: a second run starts from what the first has left, and nothing
in here can give budget back.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.budget import Budget, finite
from vesper.privacy.events import UNIT, Event
from vesper.privacy.ledger import Ledger
from vesper.privacy.participation import cap_for, spent_epsilon
from vesper.privacy.receipt import _SEAL, Receipt
from vesper.privacy.receivers import Receivers, add_cost, encode

DEFAULT_DELTA = 1e-6
"""At which an account without a budget says what it has spent."""

LARGEST_CAP = 1 << 62
"""What bounds an account without a budget: nothing but the width of its numbers."""


class Account:
    """The account of one graph; `open_account` makes it."""

    def __init__(self, ledger: Ledger, graph: str, num_nodes: int, budget: Budget | None) -> None:
        self._ledger, self._graph, self._seen = ledger, graph, 0
        self.budget = budget
        self.cap = LARGEST_CAP
        if budget is not None:
            self.cap = min(LARGEST_CAP, math.floor(cap_for(budget=budget) * UNIT))
        self.spent: NDArray[np.int64] = np.zeros(num_nodes, dtype=np.int64)
        self._pure: float | None = 0.0  # sum of pure epsilons while nothing else was charged
        self._catch_up()

    @property
    def graph(self) -> str:
        """The fingerprint of the graph: never leaves the data party."""
        return self._graph

    def charge(self, event: Event, receivers: Receivers, *, run: str) -> Receipt:
        """Charge an event to its receivers, on disk, or refuse and write nothing."""
        who = encode(receivers, len(self.spent))
        with self._ledger.transaction():
            self._catch_up()
            # In Python's numbers, which have no largest one: a sum in 64 bits could come round.
            spent = int(
                self.spent.max() if receivers is None else self.spent[receivers].max(initial=0)
            )
            if not 1 <= event.cost <= self.cap - spent:
                raise self._refusal(event, spent)
            sequence = self._ledger.append(
                graph=self._graph, run=run, facts=dict(event.facts), cost=event.cost, who=who
            )
        self._catch_up()
        return Receipt(event=event, receivers=who, graph=self._graph, sequence=sequence, seal=_SEAL)

    def spent_epsilon(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far, at `delta` or else the budget's."""
        if delta is None:
            delta = self.budget.delta if self.budget else DEFAULT_DELTA
        composed = spent_epsilon(spent=int(self.spent.max()) / UNIT, delta=delta)
        return composed if self._pure is None else min(composed, self._pure)

    def fits(self, event: Event) -> int:
        """How many more such events fit when every node receives them."""
        return max(self.cap - int(self.spent.max()), 0) // event.cost

    def _catch_up(self) -> None:
        """Replay what this and other processes have written since the last look."""
        for entry in self._ledger.entries(after=self._seen):
            if entry.graph == self._graph and entry.cost:
                if not 1 <= entry.cost <= LARGEST_CAP - int(self.spent.max()):
                    raise VesperError(
                        f"{self._ledger.path}: entry {entry.sequence} has no valid cost"
                    )
                add_cost(entry.receivers, entry.cost, self.spent)
                if self._pure is not None:
                    pure = entry.facts.get("epsilon")
                    self._pure = None if pure is None else self._pure + pure
            self._seen = entry.sequence

    def _refusal(self, event: Event, spent: int) -> BudgetError:
        requested = event.cost / UNIT
        remaining = max(self.cap - spent, 0) / UNIT
        budget = self.budget or Budget(epsilon=math.inf, delta=DEFAULT_DELTA)
        return BudgetError(
            "The privacy budget of this graph does not allow this release (mu^2 a node).\n"
            f"  Requested:  {requested:.6g}\n"
            f"  Remaining:  {remaining:.6g}\n"
            f"  Difference: {requested - remaining:.6g}\n"
            f"Spent so far: epsilon {self.spent_epsilon():.4g} of {budget.epsilon:g} at delta "
            f"{budget.delta:g}.\n"
            "Nothing was released. Use more noise, fewer releases, or a new snapshot."
        )


def open_account(
    ledger: Ledger, graph: str, *, num_nodes: int, budget: Budget | None = None
) -> Account:
    """Open the account of a graph.

    The first budget given is the budget of the graph; later ones must agree with it. Without any,
    charges are written down and count against the budget once it is set.
    """
    if num_nodes < 1:
        raise InputError(f"Expected a graph of at least one node, got {num_nodes}.")
    broken = ledger.verify()
    if broken is not None:
        raise VesperError(f"{ledger.path}: entry {broken} was changed; nothing is charged to it")
    with ledger.transaction():
        known = {e.facts["kind"]: e.facts for e in ledger.entries() if e.graph == graph}
        if "graph" not in known:
            facts: dict[str, Any] = {"kind": "graph", "num_nodes": num_nodes}
            ledger.append(graph=graph, run="", facts=facts, cost=0, who=b"")
        elif known["graph"]["num_nodes"] != num_nodes:
            raise InputError(
                f"{ledger.path}: this graph has {known['graph']['num_nodes']} nodes, "
                f"got {num_nodes}"
            )
        held = _budget_of(known)
        if budget is not None and held is None:
            facts = {"kind": "budget", "epsilon": finite(budget).epsilon, "delta": budget.delta}
            ledger.append(graph=graph, run="", facts=facts, cost=0, who=b"")
        elif budget is not None and held != budget:
            assert held is not None
            raise InputError(
                f"{ledger.path}: this graph has a budget of epsilon {held.epsilon:g}, delta "
                f"{held.delta:g} already, got epsilon {budget.epsilon:g}, delta "
                f"{budget.delta:g}; a budget belongs to the graph and is not set twice"
            )
    return Account(ledger, graph, num_nodes, budget or held)


def accounts(ledger: Ledger) -> list[Account]:
    """Open every account in the ledger, oldest first."""
    graphs: dict[str, dict[str, Any]] = {}
    for entry in ledger.entries():
        if entry.graph:
            graphs.setdefault(entry.graph, {})[entry.facts["kind"]] = entry.facts
    return [
        Account(ledger, graph, int(known["graph"]["num_nodes"]), _budget_of(known))
        for graph, known in graphs.items()
    ]


def _budget_of(known: dict[str, Any]) -> Budget | None:
    facts = known.get("budget")
    return Budget(epsilon=facts["epsilon"], delta=facts["delta"]) if facts else None
