"""Sums of one account: what is spent and what is set aside, in exact units; opens no files.

pure        sum of the epsilons of the pure releases before the first release of another kind
spent[v]    units charged to node v by all other events
set aside   what is left of open reservations, in epsilon or in units
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.accounting.participation import mu_for
from vesper.privacy.accounting.safe_numbers import float_down, float_up
from vesper.privacy.events import PURE_KIND
from vesper.privacy.ledger.cap import Cap, cap_within
from vesper.privacy.ledger.receipt import largest
from vesper.privacy.ledger.reservation import OpenReservation
from vesper.privacy.relation import EdgeRelation, Relation

DEFAULT_DELTA = 1e-6
"""Delta at which a graph without a budget reports what it has spent."""


class AccountSums:
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
        self.reservations: dict[str, OpenReservation] = {}
        """Open reservations by run."""
        self.simulated = False
        """Whether all noise charged here came from seeds: nothing is protected."""
        self._node_tables = set[str]()
        self.spent: NDArray[np.int64] = np.zeros(num_nodes, dtype=np.int64)
        self._cap = self._current_cap()

    @property
    def graph(self) -> str:
        """Name of the graph, as its owner has declared it."""
        return self._graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the version that was opened last."""
        return len(self.spent)

    @property
    def delta(self) -> float:
        """Delta of the budget, or `DEFAULT_DELTA` without a budget."""
        return self.budget.delta if self.budget else DEFAULT_DELTA

    @property
    def spent_mu_squared(self) -> float:
        """Largest sum that a node was charged; without the pure releases counted in `pure`."""
        return float_up(int(self.spent.max()) / self._cap.unit)

    def spent_epsilon(self, delta: float | None = None) -> float:
        """Epsilon of everything charged so far, at `delta` or else at the budget's delta."""
        return self._epsilon(self.spent_mu_squared, self.pure, delta)

    def reserved_epsilon(self, delta: float | None = None) -> float:
        """By how much open reservations would raise the spent epsilon if all were used up."""
        if not any(self._open_certified()):
            return 0.0
        units = int(self.spent.max()) + self._reserved_units()
        mu_squared = float_up(Fraction(units) / self._cap.unit)
        whole = self._epsilon(mu_squared, self.pure + self._reserved_pure(), delta)
        return 0.0 if math.isinf(whole) else max(0.0, whole - self.spent_epsilon(delta))

    def epsilon_after(self, *, mu_squared: float, pure: Fraction, delta: float) -> float:
        """Epsilon once every node is charged this much more."""
        whole = float_up(Fraction(self.spent_mu_squared) + Fraction(mu_squared))
        return self._epsilon(whole, self.pure + pure, delta)

    def _epsilon(self, mu_squared: float, pure: Fraction, delta: float | None = None) -> float:
        if self.unprotected is not None:
            return math.inf
        mu = mu_for(spent=mu_squared, rows=self.relation.rows)
        released = epsilon_of(mu=mu, delta=self.delta if delta is None else delta)
        return math.inf if math.isinf(released) else float_up(pure + Fraction(released))

    @property
    def _has_one_node_table(self) -> bool:
        return len(self._node_tables) <= 1

    def _largest(self, encoded_receivers: bytes) -> int:
        """Largest sum of a receiver; of any node once versions have different nodes."""
        if self._has_one_node_table:
            return largest(encoded_receivers, self.spent)
        return int(self.spent.max())

    def _open_certified(self) -> Iterator[OpenReservation]:
        return (held for held in self.reservations.values() if held.reservation.is_certified)

    def _reserved_units(self) -> int:
        return sum(held.units for held in self._open_certified())

    def _reserved_pure(self) -> Fraction:
        return sum((held.pure for held in self._open_certified()), Fraction(0))

    def _free_units(self, spent: int) -> int:
        return self._cap.units - spent - self._reserved_units()

    def _is_added_purely(self, kind: object) -> bool:
        return self._only_pure and kind == PURE_KIND

    def _units(self, cost: float) -> int:
        return self._cap.units_of(cost)

    def _left_pure_epsilon(self) -> float:
        if self.budget is None:
            return math.inf
        free = Fraction(self.budget.epsilon) - self.pure - self._reserved_pure()
        return max(0.0, float_down(free))

    def _current_cap(self) -> Cap:
        """Compute the cap for the case that the next release is not pure."""
        epsilon = self._left_pure_epsilon()
        return cap_within(self.budget, epsilon=epsilon, rows=self.relation.rows)
