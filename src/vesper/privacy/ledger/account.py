"""The account of one graph: its balance, and the ledger that records every charge first.

    charge:  lock -> book what other processes wrote -> does it fit?
             no: refuse, write nothing       yes: write, sync to disk, return a receipt

Budgets belong to graphs, not to runs: a second run starts from what the first has left, and nothing
in this module can give budget back.
"""

from dataclasses import dataclass
from typing import Any

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.accounting.budget import Budget, require_finite
from vesper.privacy.events import UNPROTECTED_KIND, Event
from vesper.privacy.ledger.balance import Balance, book, refuse_if_spent, terms_of
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.receipt import _SEAL, Receipt, Receivers, encode
from vesper.privacy.ledger.store import Ledger
from vesper.privacy.relation import EdgeRelation, Relation

STORED_KIND = "stored"


@dataclass(frozen=True)
class StoredRelease:
    """A release that was charged, drawn and stored before; it is read again, never redrawn."""

    digest: str


class Account(Balance):
    """The account of one graph, made by `open_account`."""

    def __init__(
        self,
        ledger: Ledger,
        graph: str,
        *,
        num_nodes: int,
        budget: Budget | None,
        relation: Relation | None,
    ) -> None:
        super().__init__(graph, num_nodes=num_nodes, budget=budget, relation=relation)
        self._ledger, self._last_sequence = ledger, 0
        self._catch_up()

    def charge(self, event: Event, receivers: Receivers, *, run: str) -> Receipt:
        """Charge an event to its receivers on disk, or refuse and write nothing."""
        encoded_receivers = encode(receivers, len(self.spent))
        with self._ledger.transaction():
            self._catch_up()
            self.refuse_if_over_budget(event, encoded_receivers)
            sequence = self._ledger.append(
                graph=self.graph,
                run=run,
                facts=dict(event.facts),
                cost=event.cost,
                encoded_receivers=encoded_receivers,
            )
        self._catch_up()
        return Receipt(
            event=event,
            receivers=encoded_receivers,
            graph=self.graph,
            sequence=sequence,
            seal=_SEAL,
        )

    def charge_once(
        self, event: Event, receivers: Receivers, *, run: str, number: int
    ) -> Receipt | StoredRelease:
        """Charge release `number` of a run unless it was charged before.

        A release that was charged and stored is never redrawn: the digest of the stored values is
        returned. A release that was charged but not stored has not left the process that charged
        it: a receipt is returned again, at no further cost (claim L-FILTER, drawn again).

        Raises:
            BudgetError: it does not fit, or was charged as a different event.
        """
        encoded_receivers = encode(receivers, len(self.spent))
        facts = {**event.facts, "number": number}
        with self._ledger.transaction():
            self._catch_up()
            charged, stored = self._find(run, number)
            if charged is None:
                self.refuse_if_over_budget(event, encoded_receivers)
                sequence = self._ledger.append(
                    graph=self.graph,
                    run=run,
                    facts=facts,
                    cost=event.cost,
                    encoded_receivers=encoded_receivers,
                )
            elif (charged.facts, charged.receivers) != (facts, encoded_receivers):
                raise BudgetError(
                    f"Release {number} of run {run} was charged before as {charged.facts}, got "
                    f"{facts}. Settings have changed; start a new run."
                )
            else:
                sequence = charged.sequence
        self._catch_up()
        if stored is not None:
            return StoredRelease(digest=str(stored.facts["digest"]))
        return Receipt(
            event=event,
            receivers=encoded_receivers,
            graph=self.graph,
            sequence=sequence,
            seal=_SEAL,
        )

    def mark_stored(self, receipt: Receipt, *, digest: str) -> None:
        """Record the digest of what was drawn under a receipt; only these values may leave.

        Raises:
            BudgetError: values were already stored under this charge.
        """
        with self._ledger.transaction():
            for entry in self._ledger.entries(after=receipt.sequence):
                if entry.facts["kind"] == STORED_KIND and entry.facts["of"] == receipt.sequence:
                    raise BudgetError(
                        f"Release {receipt.sequence} was drawn by another process at the same "
                        f"time; the values drawn here were discarded. Is the run active elsewhere?"
                    )
            facts = {"kind": STORED_KIND, "of": receipt.sequence, "digest": digest}
            self._ledger.append(
                graph=self.graph, run="", facts=facts, cost=0.0, encoded_receivers=b""
            )
        self._catch_up()

    def note_unprotected(self, *, run: str, plan: str) -> None:
        """Record, once per run, that edges are about to be used without a guarantee."""
        with self._ledger.transaction():
            self._catch_up()
            known = (each for each in self._ledger.entries() if each.graph == self.graph)
            if not any(e.facts["kind"] == UNPROTECTED_KIND and e.run == run for e in known):
                facts = {"kind": UNPROTECTED_KIND, "plan": plan}
                everyone = encode(None, len(self.spent))
                self._ledger.append(
                    graph=self.graph, run=run, facts=facts, cost=0.0, encoded_receivers=everyone
                )
        self._catch_up()

    def is_stored(self, *, run: str, number: int) -> bool:
        """Whether release `number` of a run was charged and stored."""
        return self._find(run, number)[1] is not None

    def is_charged(self, run: str, number: int) -> bool:
        """Whether release `number` of a run was charged."""
        return self._find(run, number)[0] is not None

    def charges_of(self, run: str) -> int:
        """Number of releases of a run that were charged."""
        mine = (entry for entry in self._ledger.entries() if entry.graph == self.graph)
        return sum(entry.run == run and entry.cost > 0 for entry in mine)

    def _find(self, run: str, number: int) -> tuple[Entry | None, Entry | None]:
        """Find the entry that charged a release, and the entry that marks it as stored."""
        charged = stored = None
        for entry in self._ledger.entries():
            if entry.graph == self.graph:
                if entry.run == run and entry.facts.get("number") == number:
                    charged = entry
                if charged and entry.facts.get("of") == charged.sequence:
                    stored = entry
        return charged, stored

    def _catch_up(self) -> None:
        """Book what this and other processes have written since the last call."""
        for entry in self._ledger.entries(after=self._last_sequence):
            if entry.graph == self.graph:
                if entry.facts["kind"] == "budget" and self.budget is None:
                    self._start_over(entry)
                book(self, entry, self._ledger)
            self._last_sequence = entry.sequence

    def _start_over(self, terms: Entry) -> None:
        """Adopt a budget that another process set after this account was opened."""
        budget, relation = terms_of({"budget": terms.facts})
        super().__init__(self.graph, num_nodes=len(self.spent), budget=budget, relation=relation)
        for entry in self._ledger.entries():
            if entry.sequence < terms.sequence and entry.graph == self.graph:
                book(self, entry, self._ledger)


def open_account(
    ledger: Ledger,
    graph: str,
    *,
    num_nodes: int,
    budget: Budget | None = None,
    relation: Relation | None = None,
) -> Account:
    """Open the account of a graph.

    The first budget given becomes the budget of the graph, for the relation given with it (one
    edge by default); later ones must equal it. Without a budget, charges are recorded and count
    against the budget once it is set.

    Raises:
        InputError: the ledger has the graph with another number of nodes, budget or relation.
        BudgetError: more was already spent than the budget allows.
        VesperError: the ledger was changed.
    """
    if num_nodes < 1:
        raise InputError(f"Expected a graph of at least one node, got {num_nodes}.")
    broken = ledger.verify()
    if broken is not None:
        raise VesperError(f"{ledger.path}: entry {broken} was changed; nothing is charged to it")
    with ledger.transaction():
        entries = [entry for entry in ledger.entries() if entry.graph == graph]
        known = {entry.facts["kind"]: entry.facts for entry in entries}
        if "graph" not in known:
            facts: dict[str, Any] = {"kind": "graph", "num_nodes": num_nodes}
            ledger.append(graph=graph, run="", facts=facts, cost=0.0, encoded_receivers=b"")
        elif known["graph"]["num_nodes"] != num_nodes:
            raise InputError(
                f"{ledger.path}: this graph has {known['graph']['num_nodes']} nodes, "
                f"got {num_nodes}"
            )
        current, current_relation = terms_of(known)
        if budget is not None:
            relation = relation or EdgeRelation()
            if current is None:
                refuse_if_spent(entries, num_nodes, require_finite(budget), relation)
                facts = {"kind": "budget", **relation.facts}
                facts |= {"epsilon": float(budget.epsilon), "delta": float(budget.delta)}
                ledger.append(graph=graph, run="", facts=facts, cost=0.0, encoded_receivers=b"")
                current, current_relation = budget, relation
            elif (current, current_relation) != (budget, relation):
                raise InputError(
                    f"{ledger.path}: this graph has a budget of epsilon {current.epsilon:g}, delta "
                    f"{current.delta:g} for {current_relation} already, got epsilon "
                    f"{budget.epsilon:g}, delta {budget.delta:g} for {relation}; a budget belongs "
                    f"to the graph and is not set twice"
                )
    return Account(ledger, graph, num_nodes=num_nodes, budget=current, relation=current_relation)


def accounts(ledger: LedgerReader) -> list[Balance]:
    """Return the balance of every graph in the ledger, oldest first.

    Raises:
        InputError: an entry cannot have been written by a ledger.
    """
    graphs: dict[str, list[Entry]] = {}
    for entry in ledger.entries():
        if entry.graph:
            graphs.setdefault(entry.graph, []).append(entry)
    return [balance_from(ledger, graph, entries) for graph, entries in graphs.items()]


def balance_from(ledger: LedgerReader, graph: str, entries: list[Entry]) -> Balance:
    """Compute a balance from all entries of one graph.

    Raises:
        InputError: an entry cannot have been written by a ledger.
    """
    known = {entry.facts["kind"]: entry.facts for entry in entries}
    num_nodes = known.get("graph", {}).get("num_nodes")
    if not (isinstance(num_nodes, int) and num_nodes > 0):
        raise InputError(
            f"{ledger.path}: entry {entries[0].sequence} is about graph {graph[:12]}, which "
            f"no entry introduces; run `vesper budget verify`"
        )
    budget, relation = terms_of(known)
    balance = Balance(graph, num_nodes=num_nodes, budget=budget, relation=relation)
    for entry in entries:
        book(balance, entry, ledger)
    return balance
