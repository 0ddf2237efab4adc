"""Checks of privacy parameters with uniform messages, and fractions rounded up or down to floats.

A message says what was expected, what was found and what to do.
"""

import math
from fractions import Fraction

from vesper.errors import InputError


def expect(holds: bool, *, name: str, wanted: str, got: object, remedy: str) -> None:
    """Raise unless `holds` is true.

    Raises:
        InputError: `holds` is false.

    >>> expect(False, name="delta", wanted="0 < delta < 1", got=2, remedy="try 1e-6")
    Traceback (most recent call last):
    vesper.errors.InputError: Expected 0 < delta < 1, got delta=2: try 1e-6.
    """
    if not holds:
        raise InputError(f"Expected {wanted}, got {name}={got}: {remedy}.")


def expect_positive(name: str, value: float) -> None:
    """Refuse a number that is not above 0 and finite."""
    expect(
        0 < value < math.inf,
        name=name,
        wanted=f"a finite {name} > 0",
        got=value,
        remedy="give a number above 0",
    )


def expect_not_negative(name: str, value: float) -> None:
    """Refuse a negative number or NaN; infinity is allowed."""
    expect(
        value >= 0,
        name=name,
        wanted=f"{name} >= 0",
        got=value,
        remedy="give 0 or a positive number",
    )


def expect_count(name: str, count: int, *, at_least: int) -> None:
    """Refuse a count below `at_least`."""
    expect(
        count >= at_least,
        name=name,
        wanted=f"{name} >= {at_least}",
        got=count,
        remedy=f"give a whole number of at least {at_least}",
    )


def expect_delta(delta: float) -> None:
    """Refuse a delta outside (0, 1)."""
    expect(
        0 < delta < 1,
        name="delta",
        wanted="0 < delta < 1",
        got=delta,
        remedy="give a public constant well below 1 / (number of edges), such as 1e-8",
    )


def float_up(value: Fraction) -> float:
    """Round to a float that is at least `value` and at most one step above it.

    >>> Fraction(float_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Fraction) -> float:
    """Round to a float that is at most `value` and at most one step below it.

    >>> Fraction(float_down(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    return -float_up(-value)
