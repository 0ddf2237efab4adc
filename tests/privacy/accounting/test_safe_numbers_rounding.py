import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from vesper.privacy.accounting.safe_numbers import float_down, float_up


@given(st.fractions())
def test_rounding_is_in_the_chosen_direction_and_off_by_at_most_one_step(value: Fraction) -> None:
    up, down = float_up(value), float_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))


def test_fractions_outside_the_range_of_floats() -> None:
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_up(Fraction(1, 10**400)) > 0
    assert float_down(Fraction(1, 10**400)) == 0
