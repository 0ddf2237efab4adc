"""What one graph has spent, and the filter that refuses charges (claim L-FILTER); opens no files.

    pure        = sum of the epsilons of the pure releases before the first release of another kind
    spent[v]    = sum of the costs of all other events that had v as a receiver
    set aside   = what is left of open reservations, in epsilon or in mu^2
    admitted  iff   pure + set aside <= epsilon   and   spent[v] + set aside <= cap for all v,
    cap         = mu^2 / rows,   mu-GDP being (epsilon - pure - set aside, delta)

The first release or reservation that is not pure fixes the cap permanently; a pure release after it
is charged its mu^2 (claim PURE-TO-GDP), unless its epsilon was set aside before. A run with a
reservation is charged to that, and to nothing else. Sums are whole numbers of a unit, of which the
cap has 2^61 to 2^62: each charge is rounded up by less than 2^-61 of the cap, and sums and
comparisons are exact.

All versions of a graph share one balance. Costs are summed for each node as long as all versions
have the same nodes in the same order; from then on, every charge counts for every node.

A graph that was ever used without a guarantee (`unprotected`) has spent everything: no epsilon
charged before or after could cover everything that was sent.
"""

import math
from fractions import Fraction

import numpy as np

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import spent_epsilon
from vesper.privacy.events import PURE_KIND, UNPROTECTED_KIND, Event
from vesper.privacy.ledger.account_sums import DEFAULT_DELTA, AccountSums
from vesper.privacy.ledger.cap import unit_of
from vesper.privacy.ledger.overlap import VERSION_KIND, version_of
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.receipt import add_cost, everyone, is_everyone
from vesper.privacy.ledger.refusals import (
    in_use_without_guarantee,
    over_budget,
    reserved_for_another,
    used_without_guarantee,
)
from vesper.privacy.ledger.reservation import (
    RESERVED_KIND,
    RETURNED_KIND,
    OpenReservation,
    Reservation,
    reservation_of,
)


class OverdrawnError(VesperError):
    """The ledger records more than the budget allows."""


class BudgetFilter(AccountSums):
    """Refuses what does not fit, and adds up what is booked, entry by entry."""

    def refuse_if_over_budget(self, event: Event, encoded_receivers: bytes, run: str = "") -> None:
        """Raise unless the event can be charged to these receivers.

        Args:
            event: what is to be charged.
            encoded_receivers: to which nodes.
            run: whose reservation it is charged to, if it has one.

        Raises:
            InputError: the event cannot be charged under this relation, or only to all nodes.
            BudgetError: it would cost more than is left, or than was reserved.
        """
        facts = event.facts
        if not self.relation.admits(facts):
            raise InputError(
                f"Expected an event whose cost holds for {self.relation}, got {facts['kind']!r}."
            )
        if facts["kind"] == PURE_KIND and not is_everyone(encoded_receivers):
            raise InputError(
                "A pure release is charged to every node: expected no list of receivers."
            )
        if not 0 < event.cost < math.inf:
            raise BudgetError(f"Expected a finite cost above 0, got {event.cost}.")
        self.refuse_unprotected()
        held = self._held_for(run)
        if held is not None:
            self._refuse_beyond(held, event)
            return
        if self._is_added_purely(str(facts["kind"])):
            if float(facts["epsilon"]) > self._left_pure_epsilon():
                raise self._refusal("epsilon", float(facts["epsilon"]), self._left_pure_epsilon())
            return
        left = self._free_units(self._largest(encoded_receivers))
        if self._units(event.cost) > left:
            raise self._refusal_of_mu(event.cost, max(left, 0) / self._cap.unit)

    def refuse_reservation(self, reservation: Reservation) -> None:
        """Raise unless the reservation fits next to everything spent and reserved.

        Raises:
            BudgetError: it does not, or one of the two certifies nothing.
        """
        others = [run for run, held in self.reservations.items() if held.reservation.is_certified]
        if not reservation.is_certified:
            if others:
                raise reserved_for_another(self.graph, run=others[0], plan=reservation.plan)
            return  # also where nothing can be certified any more
        self.refuse_unprotected()
        blocking = [run for run in self.reservations if run not in others]
        if blocking:
            raise in_use_without_guarantee(self.graph, run=blocking[0])
        if reservation.pure_epsilon and self._only_pure:
            if reservation.pure_epsilon > self._left_pure_epsilon():
                raise self._refusal("epsilon", reservation.pure_epsilon, self._left_pure_epsilon())
            return
        left = self._free_units(int(self.spent.max()))
        needed = self._units_for(reservation)
        if needed > left:
            raise self._refusal_of_mu(needed / self._cap.unit, max(left, 0) / self._cap.unit)

    def refuse_unprotected(self) -> None:
        """Raise if a run has used the graph without a guarantee.

        Raises:
            BudgetError: a run has; nothing about the graph can be certified any more.
        """
        if self.unprotected is not None:
            raise used_without_guarantee(self.graph, run=self.unprotected)

    def book(self, entry: Entry) -> None:
        """Add an entry of the ledger to the sums.

        Raises:
            InputError: the entry has no cost that is valid for this relation.
            OverdrawnError: the entry exceeds the budget or its reservation.
        """
        kind = entry.facts["kind"]
        if kind == "graph":
            self.simulated = bool(entry.facts.get("simulated", False))
        elif kind == UNPROTECTED_KIND:
            self.unprotected = self.unprotected or entry.run
        elif kind == VERSION_KIND:
            version = version_of(entry.facts)
            self._book_version(version.ids, version.num_nodes)
        elif kind == RESERVED_KIND:
            self._book_reservation(entry.run, reservation_of(entry.facts))
        elif kind == RETURNED_KIND:
            self.reservations.pop(entry.run, None)
            self._cap = self._current_cap() if self._only_pure else self._cap
        if entry.cost > 0:
            self._book_charge(entry, kind)

    def _book_charge(self, entry: Entry, kind: str) -> None:
        if not (self.relation.admits(entry.facts) and entry.cost < math.inf):
            raise InputError(f"Entry {entry.sequence}, a {kind}, has no cost for {self.relation}.")
        self.releases += 1
        held = self._held_for(entry.run)
        if self._is_added_purely(kind) if held is None else held.is_pure:
            epsilon = Fraction(entry.facts["epsilon"])
            left = self._left_pure_epsilon() if held is None else held.pure
            if not 0 < epsilon <= left:
                raise OverdrawnError(f"Entry {entry.sequence} exceeds the budget.")
            self.pure += epsilon
            if held is not None:
                held.pure -= epsilon
            self._cap = self._current_cap() if self._only_pure else self._cap
            return
        self._only_pure = False
        units = self._units(entry.cost)
        left_units = (
            self._free_units(self._largest(entry.receivers)) if held is None else held.units
        )
        if units > left_units:
            raise OverdrawnError(f"Entry {entry.sequence} exceeds the budget.")
        if held is not None:
            held.units -= units
        counted = entry.receivers if self._has_one_node_table else everyone(self.num_nodes)
        add_cost(counted, units, self.spent)

    def _book_reservation(self, run: str, reservation: Reservation) -> None:
        try:
            self.refuse_reservation(reservation)
        except BudgetError:
            raise OverdrawnError(f"The reservation of run {run} exceeds the budget.") from None
        is_pure = bool(reservation.pure_epsilon) and self._only_pure
        pure = Fraction(reservation.pure_epsilon) if is_pure else Fraction(0)
        if reservation.mu_squared > 0 and not is_pure:
            self._only_pure = False  # the cap is fixed from here on
        units = 0 if is_pure else self._units_for(reservation)
        self.reservations[run] = OpenReservation(reservation, units, pure, is_pure)
        if is_pure:
            self._cap = self._current_cap()

    def _book_version(self, ids: str, num_nodes: int) -> None:
        """Follow the graph to other nodes: any of them may have been charged the most."""
        self._node_tables.add(ids)
        if not self._has_one_node_table or num_nodes != len(self.spent):
            most = int(self.spent.max())
            self.spent = np.full(num_nodes, most, dtype=np.int64)

    def _units_for(self, reservation: Reservation) -> int:
        """Units that hold the releases of a run, of which each is rounded up by less than one.

        Noise plans leave that much of their own cap; where the unit of the account is coarser than
        that of such a cap, one more is set aside per release.
        """
        is_coarser = unit_of(reservation.mu_squared) > self._cap.unit
        extra = reservation.releases if is_coarser else 0
        return self._units(reservation.mu_squared) + extra

    def _held_for(self, run: str) -> OpenReservation | None:
        """Find what a run is charged to; a run that certifies nothing has set nothing aside."""
        held = self.reservations.get(run)
        return held if held is not None and held.reservation.is_certified else None

    def _refuse_beyond(self, held: OpenReservation, event: Event) -> None:
        """Refuse an event that its run has not reserved."""
        if held.is_pure and event.facts["kind"] == PURE_KIND:
            if Fraction(event.facts["epsilon"]) > held.pure:
                raise self._refusal("epsilon", float(event.facts["epsilon"]), held.pure)
        elif held.is_pure or self._units(event.cost) > held.units:
            raise self._refusal_of_mu(event.cost, held.units / self._cap.unit)

    def _refusal_of_mu(
        self, requested: float | Fraction, remaining: float | Fraction
    ) -> BudgetError:
        """Refuse a cost, stated as the epsilon that so much alone would be worth."""
        alone = [
            spent_epsilon(spent=float(each), delta=self.delta, rows=self.relation.rows)
            for each in (requested, remaining)
        ]
        return self._refusal(f"epsilon at delta {self.delta:g}, each on its own", *alone)

    def _refusal(self, what: str, requested: float, remaining: float | Fraction) -> BudgetError:
        return over_budget(
            self.graph,
            what=what,
            requested=requested,
            remaining=float(remaining),
            budget=self.budget or Budget(epsilon=math.inf, delta=DEFAULT_DELTA),
            spent=self.spent_epsilon(),
            reserved=self.reserved_epsilon(),
        )
