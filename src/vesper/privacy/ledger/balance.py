"""What one graph has spent and has left, in epsilon and in releases, for people and for plans."""

import math
from fractions import Fraction

from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.accounting.participation import noise_std_within
from vesper.privacy.accounting.safe_numbers import float_down
from vesper.privacy.events import Event
from vesper.privacy.ledger.budget_filter import BudgetFilter


class Balance(BudgetFilter):
    """A filter that can say what it would still admit."""

    @property
    def left_mu_squared(self) -> float | None:
        """mu^2 that every node can still be charged; None without a budget."""
        if self.budget is None:
            return None
        if self.unprotected is not None:
            return 0.0
        return max(0.0, float_down(self._free_units(int(self.spent.max())) / self._cap.unit))

    @property
    def left_pure_epsilon(self) -> float:
        """Epsilon that pure releases, and reservations for them, have left of the budget."""
        return self._left_pure_epsilon()

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
            left = Fraction(self.budget.epsilon) - self.pure - self._reserved_pure()
            return max(0, left // Fraction(event.facts["epsilon"]))
        return max(0, self._free_units(int(self.spent.max()))) // self._units(event.cost)

    def noise_std_for(self, *, releases: int) -> float:
        """Smallest noise with which `releases` more sums of unit-norm messages fit for every node.

        Raises:
            InputError: there is no budget, or none is left.
        """
        if self.left_mu_squared is None:
            raise InputError("Expected an account with a budget to plan noise, got one without.")
        cap = float(self._cap.units / self._cap.unit)
        return noise_std_within(room=self.left_mu_squared, cap=cap, releases=releases)
