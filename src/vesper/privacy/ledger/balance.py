"""What one graph has spent, and the filter that refuses charges (claim L-FILTER); opens no files.

    pure      = sum of the epsilons of the pure releases before the first release of another kind
    spent[v]  = sum of the costs of all other events that had v as a receiver
    admitted  iff   pure <= epsilon   and   spent[v] <= cap for all v,
    cap       = mu^2 / rows,   mu-GDP being (epsilon - pure, delta)

The first release that is not pure fixes the cap permanently; a pure release after it is charged its
mu^2 (claim PURE-TO-GDP). Sums are whole numbers of a unit, of which the cap has 2^61 to 2^62: each
charge is rounded up by less than 2^-61 of the cap, and sums and comparisons are exact.

A graph that was ever used without a guarantee (`unprotected`) has spent everything: no epsilon
charged before or after could cover everything that was sent.

Budget and relation of an account are read from its entries in the ledger (`terms_of`).
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError, VesperError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.accounting.participation import cap_for, mu_for, noise_std_within
from vesper.privacy.accounting.safe_numbers import float_down, float_up
from vesper.privacy.events import PURE_KIND, UNPROTECTED_KIND, Event
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.receipt import add_cost, is_everyone, largest
from vesper.privacy.relation import EdgeRelation, Relation, relation_of

DEFAULT_DELTA = 1e-6
"""Delta at which a graph without a budget reports what it has spent."""

LARGEST_CAP = 1 << 62
"""Largest cap in units, so that sums stay within 64 bits."""

UNLIMITED_UNIT = Fraction(1 << 40)
"""Units per mu^2 of 1 where there is no cap to divide."""


class OverdrawnError(VesperError):
    """The ledger records more than the budget allows."""


class _Cap(NamedTuple):
    units: int
    unit: Fraction  # units per mu^2 of 1


class Balance:
    """The sums of one graph, updated entry by entry with `book`."""

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
        """The first run that used the graph without a guarantee, if any did."""
        self.spent: NDArray[np.int64] = np.zeros(num_nodes, dtype=np.int64)
        self._cap = self._current_cap()

    @property
    def graph(self) -> str:
        """Fingerprint of the graph; it never leaves the data party."""
        return self._graph

    @property
    def delta(self) -> float:
        """Delta of the budget, or `DEFAULT_DELTA` without a budget."""
        return self.budget.delta if self.budget else DEFAULT_DELTA

    @property
    def spent_mu_squared(self) -> float:
        """Largest sum that a node was charged; without the pure releases counted in `pure`."""
        return float_up(int(self.spent.max()) / self._cap.unit)

    @property
    def left_mu_squared(self) -> float | None:
        """mu^2 that every node can still be charged; None without a budget."""
        if self.budget is None:
            return None
        if self.unprotected is not None:
            return 0.0
        return max(0.0, float_down((self._cap.units - int(self.spent.max())) / self._cap.unit))

    def spent_epsilon(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far, at `delta` or else at the budget's delta."""
        if self.unprotected is not None:
            return math.inf
        mu = mu_for(spent=self.spent_mu_squared, rows=self.relation.rows)
        released = epsilon_of(mu=mu, delta=self.delta if delta is None else delta)
        return math.inf if math.isinf(released) else float_up(self.pure + Fraction(released))

    def left_epsilon(self) -> float | None:
        """Largest epsilon, at the budget's delta, that one more release to every node can have.

        This is more than budget minus spent, because releases compose better than by addition.
        """
        if self.budget is None or self.left_mu_squared is None:
            return None
        mu = math.sqrt(self.relation.rows * self.left_mu_squared)
        return min(epsilon_of(mu=mu, delta=self.delta), self._left_pure_epsilon())

    def fits(self, event: Event) -> int:
        """Number of further such events that fit if every node receives them."""
        if self.unprotected is not None:
            return 0
        if self._is_added_purely(event.facts["kind"]) and self.budget is not None:
            left = Fraction(self.budget.epsilon) - self.pure
            return max(0, left // Fraction(event.facts["epsilon"]))
        return (self._cap.units - int(self.spent.max())) // self._units(event.cost)

    def noise_std_for(self, *, releases: int) -> float:
        """Smallest noise with which `releases` more sums of unit-norm messages fit for every node.

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
            InputError: the event cannot be charged under this relation, or only to all nodes.
            BudgetError: it would cost more than is left.
        """
        facts = event.facts
        self.refuse_unprotected()
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
        if self._is_added_purely(str(facts["kind"])):
            if float(facts["epsilon"]) > self._left_pure_epsilon():
                raise self._refusal("epsilon", float(facts["epsilon"]), self._left_pure_epsilon())
            return
        left = self._cap.units - largest(encoded_receivers, self.spent)
        if self._units(event.cost) > left:
            raise self._refusal("mu^2 per node", event.cost, max(left, 0) / self._cap.unit)

    def refuse_unprotected(self) -> None:
        """Raise if a run has used the graph without a guarantee.

        Raises:
            BudgetError: a run has; nothing about the graph can be certified any more.
        """
        if self.unprotected is not None:
            raise BudgetError(
                f"This graph was used without a guarantee by run {self.unprotected}, so no epsilon "
                "holds for everything that was sent about it. Nothing was released. Use a new "
                "snapshot or, if nothing from that run has left this party, a separate ledger."
            )

    def book(self, entry: Entry) -> None:
        """Add an entry of the ledger to the sums.

        Raises:
            InputError: the entry has no cost that is valid for this relation.
            OverdrawnError: the entry exceeds the budget.
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
                raise OverdrawnError(f"Entry {entry.sequence} exceeds the budget.")
            self.pure += epsilon
            self._cap = self._current_cap()
            return
        self._only_pure = False
        units = self._units(entry.cost)
        if units > self._cap.units - largest(entry.receivers, self.spent):
            raise OverdrawnError(f"Entry {entry.sequence} exceeds the budget.")
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
        """Compute the cap for the case that the next release is not pure."""
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
    """Book an entry; name the ledger if vesper cannot have written it.

    Raises:
        InputError: vesper cannot have written the entry.
    """
    try:
        balance.book(entry)
    except (OverdrawnError, InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{ledger.path}: entry {entry.sequence} was not written by vesper ({error}); run "
            f"`vesper budget verify`"
        ) from None


def terms_of(known: dict[str, Any]) -> tuple[Budget | None, Relation | None]:
    """Read the budget and relation of a graph from the facts of its entries, keyed by kind."""
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
    """Refuse a new budget that is below what is already spent.

    Raises:
        BudgetError: more is spent, or a run has used the graph without a guarantee.
    """
    limited = Balance("", num_nodes=num_nodes, budget=budget, relation=relation)
    unlimited = Balance("", num_nodes=num_nodes, budget=None, relation=relation)
    spent = 0.0
    try:
        for entry in entries:
            unlimited.book(entry)
            spent = unlimited.spent_epsilon(budget.delta)
            limited.book(entry)
        unlimited.refuse_unprotected()
    except OverdrawnError:
        raise BudgetError(
            "This graph has already spent more than the budget that is to be set (epsilon at "
            f"delta {budget.delta:g}).\n"
            f"  Requested:  {spent:.6g}\n"
            f"  Remaining:  {budget.epsilon:.6g}\n"
            f"  Difference: {spent - budget.epsilon:.6g}\n"
            "Nothing was set. Set a larger budget, or use a new snapshot."
        ) from None
