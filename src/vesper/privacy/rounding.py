"""Exact fractions to floats, with the error on the side that is asked for."""

import math
from fractions import Fraction


def float_up(value: Fraction) -> float:
    """Give the smallest float that is at least `value`, within one step.

    >>> Fraction(float_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Fraction) -> float:
    """Give the largest float that is at most `value`, within one step.

    >>> Fraction(float_down(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    return -float_up(-value)
