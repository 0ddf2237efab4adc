"""Caps in whole units: exact, and rounded against ourselves."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import EDGE_ROWS, cap_for
from vesper.privacy.ledger.cap import LARGEST_CAP, UNLIMITED_UNIT, Cap, cap_within

BUDGET = Budget(epsilon=1.0, delta=1e-6)


@given(epsilon=st.floats(1e-6, 1e6), rows=st.floats(1, 1e6))
def test_a_cap_has_62_bits_and_is_that_of_the_epsilon(epsilon: float, rows: float) -> None:
    cap = cap_within(BUDGET, epsilon=epsilon, rows=rows)
    assert LARGEST_CAP // 2 <= cap.units <= LARGEST_CAP
    exact = Fraction(cap_for(budget=Budget(epsilon=epsilon, delta=1e-6), rows=rows))
    assert cap.units / cap.unit <= exact
    assert cap.units_of(float(exact)) == cap.units  # a reservation of the whole cap fits


@given(cost=st.floats(1e-300, 1e6))
def test_costs_are_rounded_up_by_less_than_a_unit(cost: float) -> None:
    cap = cap_within(BUDGET, epsilon=1.0, rows=EDGE_ROWS)
    exact = Fraction(cost) * cap.unit
    assert exact <= cap.units_of(cost) < exact + 1
    assert cap.units_of(cost) >= 1


@pytest.mark.parametrize(
    ("budget", "epsilon", "expected"),
    [
        (None, 1.0, Cap(LARGEST_CAP, UNLIMITED_UNIT)),
        (BUDGET, 0.0, Cap(0, UNLIMITED_UNIT)),  # pure releases have used it up
    ],
)
def test_without_a_budget_all_fits_and_without_epsilon_nothing(
    budget: Budget | None, epsilon: float, expected: Cap
) -> None:
    assert cap_within(budget, epsilon=epsilon, rows=EDGE_ROWS) == expected
