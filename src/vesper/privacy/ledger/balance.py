"""What one graph has spent, and the filter that refuses (claim L-FILTER). No files in here.

    pure      = sum of the epsilons of the pure releases before the first release of another kind
    spent[v]  = sum of the costs of all other events that had v as a receiver
    admitted  iff   pure <= epsilon   and   spent[v] <= cap for all v,
    cap       = mu^2 / rows,   mu-GDP being (epsilon - pure, delta)

The first release that is not pure fixes the cap for good; a pure release after it is charged its
mu^2 (claim PURE-TO-GDP). Sums are whole numbers of a unit of which the cap has 2^61 to 2^62: each
charge is rounded up by less than 2^-61 of the cap, and sums and comparisons are exact.

A graph that was used once without a guarantee (`unprotected`) has spent everything: no epsilon that
is charged before or after could speak for all that was sent.

The terms of an account, as the ledger's entries tell them: budget, relation, what is booked.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.checks import float_down, float_up
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.accounting.participation import cap_for, mu_for, noise_std_within
from vesper.privacy.events import PURE_KIND, UNPROTECTED_KIND, Event
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.receipt import add_cost, is_everyone, largest
from vesper.privacy.relation import EdgeRelation, Relation, relation_of

DEFAULT_DELTA = 1e-6
"""At which a graph without a budget says what it has spent."""

LARGEST_CAP = 1 << 62
"""Sums stay within 64 bits."""

UNLIMITED_UNIT = Fraction(1 << 40)
"""Units a mu^2 of 1 where there is no cap to measure by."""


class OverdrawnError(VesperError):
    """What is written down is more than the budget allows."""


class _Cap(NamedTuple):
    units: int
    unit: Fraction  # units that make a mu^2 of 1


class Balance:
    """The sums of one graph, brought up to date entry by entry with `book`."""

    def __init__(
        self,
        graph: str,
        *,
        num_nodes: int,
        budget: Budget | None,
        relation: Relation | None = None,
    ) -> None:
        self._graph, self.budget, self.relation = graph, budget, relation or EdgeRelation()
        self.pure, self.releases = Fraction(0), 0
        self._only_pure = True
        self.unprotected: str | None = None
        """The run that used the graph without a guarantee, if any did."""
        self.spent: NDArray[np.int64] = np.zeros(num_nodes, dtype=np.int64)
        self._cap = self._current_cap()

    @property
    def graph(self) -> str:
        """The fingerprint of the graph: never leaves the data party."""
        return self._graph

    @property
    def delta(self) -> float:
        """The budget's, or what stands in for it."""
        return self.budget.delta if self.budget else DEFAULT_DELTA

    @property
    def spent_mu_squared(self) -> float:
        """What the node with the largest sum was charged, pure releases counted plainly apart."""
        return float_up(int(self.spent.max()) / self._cap.unit)

    @property
    def left_mu_squared(self) -> float | None:
        """What every node can still be charged; None without a budget."""
        if self.budget is None:
            return None
        if self.unprotected is not None:
            return 0.0
        return max(0.0, float_down((self._cap.units - int(self.spent.max())) / self._cap.unit))

    def spent_epsilon(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far, at `delta` or else the budget's."""
        if self.unprotected is not None:
            return math.inf
        mu = mu_for(spent=self.spent_mu_squared, rows=self.relation.rows)
        released = epsilon_of(mu=mu, delta=self.delta if delta is None else delta)
        return math.inf if math.isinf(released) else float_up(self.pure + Fraction(released))

    def left_epsilon(self) -> float | None:
        """Largest epsilon, at the budget's delta, that one more release to every node can have.

        Not the difference of budget and spent: releases compose better than they add up.
        """
        if self.budget is None or self.left_mu_squared is None:
            return None
        mu = math.sqrt(self.relation.rows * self.left_mu_squared)
        return min(epsilon_of(mu=mu, delta=self.delta), self._left_pure_epsilon())

    def fits(self, event: Event) -> int:
        """How many more such events fit when every node receives them."""
        if self.unprotected is not None:
            return 0
        if self._is_added_purely(event.facts["kind"]) and self.budget is not None:
            left = Fraction(self.budget.epsilon) - self.pure
            return max(0, left // Fraction(event.facts["epsilon"]))
        return (self._cap.units - int(self.spent.max())) // self._units(event.cost)

    def noise_std_for(self, *, releases: int) -> float:
        """Smallest noise with which `releases` more sums of unit messages fit for every node.

        Raises:
            InputError: there is no budget, or none is left.
        """
        if self.left_mu_squared is None:
            raise InputError("Expected an account with a budget to plan noise, got one without.")
        cap = float(self._cap.units / self._cap.unit)
        return noise_std_within(room=self.left_mu_squared, cap=cap, releases=releases)

    def refuse_if_over_budget(self, event: Event, encoded_receivers: bytes) -> None:
        """Raise unless the event can be charged to these receivers.

        Raises:
            InputError: the event cannot be charged under this relation, or not to a part of nodes.
            BudgetError: it would cost more than is left.
        """
        facts = event.facts
        self.refuse_unprotected()
        if not self.relation.admits(facts):
            raise InputError(
                f"Expected an event whose cost holds for {self.relation}, got {facts['kind']!r}."
            )
        if facts["kind"] == PURE_KIND and not is_everyone(encoded_receivers):
            raise InputError("A pure release is charged to every node: expected no receivers.")
        if not 0 < event.cost < math.inf:
            raise BudgetError(f"Expected a finite cost above 0, got {event.cost}.")
        if self._is_added_purely(str(facts["kind"])):
            if float(facts["epsilon"]) > self._left_pure_epsilon():
                raise self._refusal("epsilon", float(facts["epsilon"]), self._left_pure_epsilon())
            return
        room = self._cap.units - largest(encoded_receivers, self.spent)
        if self._units(event.cost) > room:
            raise self._refusal("mu^2 a node", event.cost, max(room, 0) / self._cap.unit)

    def refuse_unprotected(self) -> None:
        """Raise if a run has used the graph without a guarantee.

        Raises:
            BudgetError: one has; nothing about the graph can be certified after it.
        """
        if self.unprotected is not None:
            raise BudgetError(
                f"This graph was used without a guarantee by run {self.unprotected}, so no epsilon "
                "holds for everything that was sent about it. Nothing was released. Use a new "
                "snapshot; or, if nothing of that run has left this party, a ledger of its own."
            )

    def book(self, entry: Entry) -> None:
        """Count an entry of the ledger in.

        Raises:
            InputError: the entry has no cost that counts here.
            Overdrawn: the entry is more than the budget has.
        """
        if entry.facts["kind"] == UNPROTECTED_KIND:
            self.unprotected = self.unprotected or entry.run
        if not entry.cost > 0:
            return
        kind = entry.facts["kind"]
        if not (self.relation.admits(entry.facts) and entry.cost < math.inf):
            raise InputError(f"Entry {entry.sequence}, a {kind}, has no cost for {self.relation}.")
        self.releases += 1
        if self._is_added_purely(kind):
            epsilon = Fraction(entry.facts["epsilon"])
            if not 0 < epsilon <= self._left_pure_epsilon():
                raise OverdrawnError(f"Entry {entry.sequence} is more than the budget has.")
            self.pure += epsilon
            self._cap = self._current_cap()
            return
        self._only_pure = False
        units = self._units(entry.cost)
        if units > self._cap.units - largest(entry.receivers, self.spent):
            raise OverdrawnError(f"Entry {entry.sequence} is more than the budget has.")
        add_cost(entry.receivers, units, self.spent)

    def _is_added_purely(self, kind: object) -> bool:
        return self._only_pure and kind == PURE_KIND

    def _units(self, cost: float) -> int:
        return math.ceil(Fraction(cost) * self._cap.unit)

    def _left_pure_epsilon(self) -> float:
        if self.budget is None:
            return math.inf
        return max(0.0, float_down(Fraction(self.budget.epsilon) - self.pure))

    def _current_cap(self) -> _Cap:
        """The cap if the next release is not pure."""
        epsilon = self._left_pure_epsilon()
        if self.budget is None or epsilon == 0:
            return _Cap(0 if self.budget else LARGEST_CAP, UNLIMITED_UNIT)
        left = Budget(epsilon=epsilon, delta=self.budget.delta)
        cap = cap_for(budget=left, rows=self.relation.rows)
        if cap == 0:
            return _Cap(0, UNLIMITED_UNIT)
        unit = Fraction(2) ** (62 - math.frexp(cap)[1])
        return _Cap(math.floor(Fraction(cap) * unit), unit)

    def _refusal(self, what: str, requested: float, remaining: float | Fraction) -> BudgetError:
        budget = self.budget or Budget(epsilon=math.inf, delta=DEFAULT_DELTA)
        return BudgetError(
            f"The privacy budget of this graph does not allow this release ({what}).\n"
            f"  Requested:  {requested:.6g}\n"
            f"  Remaining:  {float(remaining):.6g}\n"
            f"  Difference: {requested - float(remaining):.6g}\n"
            f"Spent so far: epsilon {self.spent_epsilon():.4g} of {budget.epsilon:g} at delta "
            f"{budget.delta:g}.\n"
            "Nothing was released. Use more noise, fewer releases, or a new snapshot."
        )


def book(balance: Balance, entry: Entry, ledger: LedgerReader) -> None:
    """Count an entry in; blame the ledger for one that vesper cannot have written."""
    try:
        balance.book(entry)
    except (OverdrawnError, InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{ledger.path}: entry {entry.sequence} is none that vesper wrote ({error}); run "
            f"`vesper budget verify`"
        ) from None


def terms_of(known: dict[str, Any]) -> tuple[Budget | None, Relation | None]:
    """Budget and relation of a graph, from the facts of its entries by kind."""
    facts = known.get("budget")
    if facts is None:
        return None, None
    match facts:
        case {"epsilon": float(epsilon), "delta": float(delta)}:
            return Budget(epsilon=epsilon, delta=delta), relation_of(facts)
        case _:
            raise InputError(f"Expected a budget with epsilon and delta, got {facts}.")


def refuse_if_spent(
    entries: Iterable[Entry], num_nodes: int, budget: Budget, relation: Relation
) -> None:
    """A budget below what is spent cannot be kept: it is refused, not shown as overdrawn."""
    asked = Balance("", num_nodes=num_nodes, budget=budget, relation=relation)
    unlimited = Balance("", num_nodes=num_nodes, budget=None, relation=relation)
    spent = 0.0
    try:
        for entry in entries:
            unlimited.book(entry)
            spent = unlimited.spent_epsilon(budget.delta)
            asked.book(entry)
        unlimited.refuse_unprotected()
    except OverdrawnError:
        raise BudgetError(
            "This graph has spent more already than the budget that is to be set (epsilon at "
            f"delta {budget.delta:g}).\n"
            f"  Requested:  {spent:.6g}\n"
            f"  Remaining:  {budget.epsilon:.6g}\n"
            f"  Difference: {spent - budget.epsilon:.6g}\n"
            "Nothing was set. Set a larger budget, or use a new snapshot."
        ) from None
