import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from vesper.privacy.accounting.checks import float_down, float_up


@given(st.fractions())
def test_the_error_is_on_the_side_that_is_asked_for_and_below_one_step(value: Fraction) -> None:
    up, down = float_up(value), float_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))


def test_what_no_float_can_hold() -> None:
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_up(Fraction(1, 10**400)) > 0
    assert float_down(Fraction(1, 10**400)) == 0
