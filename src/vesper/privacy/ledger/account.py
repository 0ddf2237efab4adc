"""The account of one graph: its balance, and the ledger that records every charge first.

    reserve:  lock -> book what other processes wrote -> does the run fit?
              no: refuse, write nothing      yes: write, sync to disk
    charge:   the same for one release, drawn on the reservation of its run; returns a receipt

A graph is what its owner has given a name. All versions of it, over time, share the account of that
name: a second run, or a run on other edges, starts from what the first has left. Nothing in this
module can give budget back, except the unused part of a reservation.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.accounting.budget import Budget, require_finite
from vesper.privacy.accounting.safe_numbers import float_down
from vesper.privacy.events import UNPROTECTED_KIND, Event
from vesper.privacy.ledger.account_reader import book, refuse_if_spent, terms_of
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.overlap import GraphVersion
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.receipt import _SEAL, Receipt, Receivers, encode, everyone
from vesper.privacy.ledger.refusals import refuse_other_noise, refuse_other_terms
from vesper.privacy.ledger.reservation import Reservation
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
        opened_num_nodes: int,
        budget: Budget | None,
        relation: Relation | None,
    ) -> None:
        super().__init__(graph, num_nodes=num_nodes, budget=budget, relation=relation)
        self._ledger, self._last_sequence, self._first_num_nodes = ledger, 0, num_nodes
        self._opened_num_nodes = opened_num_nodes  # while others may open other versions
        self._catch_up()

    @property
    def ledger(self) -> Ledger:
        """The ledger that holds the account."""
        return self._ledger

    def reserve(self, reservation: Reservation, *, run: str) -> Reservation:
        """Reserve for a run, or return what it has reserved before; refuse and write nothing.

        Raises:
            BudgetError: it does not fit next to what is spent and reserved.
        """
        with self._ledger.transaction():
            self._catch_up()
            held = self.reservations.get(run)
            if held is not None:
                return held.reservation
            spent = self._units_spent_by(run)
            if spent:  # whole units, as `book` counts them: nothing is lost to rounding
                left = max(0, self._units_for(reservation) - spent)
                mu_squared = float_down(Fraction(left) / self._cap.unit)
                reservation = replace(
                    reservation, mu_squared=mu_squared, pure_epsilon=0.0, releases=0
                )
            self.refuse_reservation(reservation)
            self._append(run, reservation.facts)
        self._catch_up()
        return reservation

    def charge(self, event: Event, receivers: Receivers, *, run: str) -> Receipt:
        """Charge an event to its receivers on disk, or refuse and write nothing."""
        encoded_receivers = encode(receivers, self._opened_num_nodes)
        with self._ledger.transaction():
            self._catch_up()
            self.refuse_if_over_budget(event, encoded_receivers, run)
            sequence = self._append(run, dict(event.facts), event.cost, encoded_receivers)
        self._catch_up()
        return self._receipt(event, encoded_receivers, sequence)

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
        encoded_receivers = encode(receivers, self._opened_num_nodes)
        facts = {**event.facts, "number": number}
        with self._ledger.transaction():
            self._catch_up()
            charged, stored = self._find(run, number)
            if charged is None:
                self.refuse_if_over_budget(event, encoded_receivers, run)
                sequence = self._append(run, facts, event.cost, encoded_receivers)
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
        return self._receipt(event, encoded_receivers, sequence)

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
            self._append("", {"kind": STORED_KIND, "of": receipt.sequence, "digest": digest})
        self._catch_up()

    def note_unprotected(self, *, run: str, plan: str) -> None:
        """Record, once per run, that edges are about to be used without a guarantee.

        Raises:
            BudgetError: a certified run has a reservation, since this one has returned its own.
        """
        with self._ledger.transaction():
            self._catch_up()
            if any(held.reservation.is_certified for held in self.reservations.values()):
                raise BudgetError(
                    f"Graph '{self.graph}' is reserved for a certified run, as run {run} has "
                    f"returned its reservation. Nothing was sent. Start it again."
                )
            if not any(e.facts["kind"] == UNPROTECTED_KIND and e.run == run for e in self._mine()):
                facts = {"kind": UNPROTECTED_KIND, "plan": plan}
                self._append(run, facts, encoded_receivers=everyone(self.num_nodes))
        self._catch_up()

    def is_stored(self, *, run: str, number: int) -> bool:
        """Whether release `number` of a run was charged and stored."""
        return self._find(run, number)[1] is not None

    def is_charged(self, run: str, number: int) -> bool:
        """Whether release `number` of a run was charged."""
        return self._find(run, number)[0] is not None

    def charges_of(self, run: str) -> int:
        """Number of releases of a run that were charged."""
        return sum(entry.run == run and entry.cost > 0 for entry in self._mine())

    def _mine(self) -> list[Entry]:
        return [entry for entry in self._ledger.entries() if entry.graph == self.graph]

    def _units_spent_by(self, run: str) -> int:
        """Sum of what a run was charged per node, for a run that reserves a second time."""
        return sum(self._units(entry.cost) for entry in self._mine() if entry.run == run)

    def _append(
        self, run: str, facts: dict[str, Any], cost: float = 0.0, encoded_receivers: bytes = b""
    ) -> int:
        return self._ledger.append(
            graph=self.graph, run=run, facts=facts, cost=cost, encoded_receivers=encoded_receivers
        )

    def _receipt(self, event: Event, encoded_receivers: bytes, sequence: int) -> Receipt:
        return Receipt(
            event=event,
            receivers=encoded_receivers,
            graph=self.graph,
            sequence=sequence,
            seal=_SEAL,
        )

    def _find(self, run: str, number: int) -> tuple[Entry | None, Entry | None]:
        """Find the entry that charged a release, and the entry that marks it as stored."""
        charged = stored = None
        for entry in self._mine():
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
        num_nodes = self._first_num_nodes
        super().__init__(self.graph, num_nodes=num_nodes, budget=budget, relation=relation)
        for entry in self._mine():
            if entry.sequence < terms.sequence:
                book(self, entry, self._ledger)


def open_account(
    ledger: Ledger,
    graph: str,
    *,
    num_nodes: int,
    version: GraphVersion | None = None,
    budget: Budget | None = None,
    relation: Relation | None = None,
    simulated: bool = False,
) -> Account:
    """Open the account of a graph, and record which version of the graph is opened.

    The first budget given becomes the budget of the graph, for the relation given with it (one
    edge by default). Later ones are parts of it: no larger, with the same delta and relation.
    Without a budget, charges are recorded and count against the budget once it is set.

    Args:
        ledger: the file.
        graph: name of the graph.
        num_nodes: number of nodes of this version.
        version: what to record of this version; None for tables that never change their size.
        budget: of a run.
        relation: what two graphs differ by.
        simulated: whether noise comes from a seed; simulated and secret noise never share a name.

    Raises:
        InputError: the ledger has the graph with another kind of noise, delta or relation, or with
            a smaller epsilon.
        BudgetError: more was already spent than the budget allows.
        VesperError: the ledger was changed.
    """
    if num_nodes < 1:
        raise InputError(f"Expected a graph of at least one node, got {num_nodes}.")
    broken = ledger.verify()
    if broken is not None:
        raise VesperError(f"{ledger.path}: entry {broken} was changed; nothing is charged to it")

    def append(facts: dict[str, Any]) -> None:
        ledger.append(graph=graph, run="", facts=facts, cost=0.0, encoded_receivers=b"")

    with ledger.transaction():
        entries = [entry for entry in ledger.entries() if entry.graph == graph]
        known = {entry.facts["kind"]: entry.facts for entry in entries}
        if "graph" not in known:
            known["graph"] = {"kind": "graph", "num_nodes": num_nodes, "simulated": simulated}
            append(known["graph"])
        refuse_other_noise(ledger.path, graph, known["graph"], simulated=simulated)
        first_num_nodes = int(known["graph"]["num_nodes"])
        if version is None and first_num_nodes != num_nodes:
            raise InputError(
                f"{ledger.path}: '{graph}' has {first_num_nodes} nodes, got {num_nodes}"
            )
        current, current_relation = terms_of(known)
        if budget is not None and current is None:
            current, current_relation = budget, relation or EdgeRelation()
            refuse_if_spent(entries, first_num_nodes, require_finite(budget), current_relation)
            terms = {"epsilon": float(budget.epsilon), "delta": float(budget.delta)}
            append({"kind": "budget", **current_relation.facts, **terms})
        elif budget is not None and current is not None:
            refuse_other_terms(
                ledger.path,
                graph,
                (current, current_relation),
                (budget, relation or EdgeRelation()),
            )
        if version is not None:
            append(version.facts)
        return Account(
            ledger,
            graph,
            num_nodes=first_num_nodes,
            opened_num_nodes=num_nodes,
            budget=current,
            relation=current_relation,
        )
