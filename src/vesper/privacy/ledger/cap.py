"""Cap of an account in whole units, so that sums are exact and no order of charges matters.

    cap     largest mu^2 per node within (epsilon, delta)
    unit    power of two, such that the cap has 62 bits:     units(cost) = ceil(cost * unit)

Costs are rounded up and the cap is exact: rounding is against ourselves.
"""

import math
from fractions import Fraction
from typing import NamedTuple

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for

LARGEST_CAP = 1 << 62
"""Largest cap in units, so that sums stay within 64 bits."""

UNLIMITED_UNIT = Fraction(1 << 40)
"""Units per mu^2 of 1 where there is no cap to divide."""


class Cap(NamedTuple):
    """A cap, and the unit that it is counted in."""

    units: int
    unit: Fraction
    """Units per mu^2 of 1."""

    def units_of(self, cost: float) -> int:
        """Convert a mu^2 to units, rounded up."""
        return math.ceil(Fraction(cost) * self.unit)


def cap_within(budget: Budget | None, *, epsilon: float, rows: float) -> Cap:
    """Return the cap for what is left of a budget; without a budget there is none.

    Args:
        budget: of the account.
        epsilon: what pure releases have left of it.
        rows: rows of a release that a change of the graph reaches.
    """
    if budget is None:
        return Cap(LARGEST_CAP, UNLIMITED_UNIT)
    cap = cap_for(budget=Budget(epsilon=epsilon, delta=budget.delta), rows=rows) if epsilon else 0
    if cap == 0:
        return Cap(0, UNLIMITED_UNIT)
    unit = unit_of(cap)
    return Cap(math.floor(Fraction(cap) * unit), unit)


def unit_of(cap: float) -> Fraction:
    """Return the units per mu^2 of 1 with which a cap has 62 bits."""
    return Fraction(2) ** (62 - math.frexp(cap)[1])
