"""Numbers on the safe side: checked on entry, and rounded or searched against ourselves.

    expect_*       refuse a parameter, saying what was expected, what was found and what to do
    float_up/down  round a fraction to a float that is at least, or at most, as large
    safe_side      bisect to a point at which a condition is known to hold

The result of a bisection is always a point at which `holds` was called and returned true. An
interpolated point, or one that is merely within a tolerance of the root, is never returned.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from vesper.errors import InputError

FULL_PRECISION = 2.0**-51


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


def safe_side(
    holds: Callable[[float], bool],
    *,
    safe: float,
    unsafe: float,
    relative_gap: float = FULL_PRECISION,
) -> float:
    """Move `safe` towards `unsafe` as far as `holds` allows.

    Args:
        holds: true at `safe`, false at `unsafe`, with one change in between.
        safe: a point at which `holds` is known to be true.
        unsafe: a point at which `holds` is known to be false.
        relative_gap: stop when the two points are this close, relative to the larger one.

    >>> safe_side(lambda x: x * x <= 2, safe=0.0, unsafe=2.0) ** 2 <= 2
    True
    """
    while abs(unsafe - safe) > relative_gap * max(abs(safe), abs(unsafe)):
        middle = safe + (unsafe - safe) / 2
        if middle in (safe, unsafe):
            break
        if holds(middle):
            safe = middle
        else:
            unsafe = middle
    return safe


def bracket(holds: Callable[[float], bool], *, start: float, factor: float) -> tuple[float, float]:
    """Find (safe, unsafe) around the one point where `holds` changes.

    With `factor` > 1 large points are safe (more noise, larger epsilon); with `factor` < 1 small
    points are (smaller mu).

    >>> bracket(lambda x: x >= 5, start=1.0, factor=2.0)
    (8.0, 4.0)
    >>> bracket(lambda x: x <= 5, start=1.0, factor=0.5)
    (4.0, 8.0)
    """
    point = start
    if holds(point):
        while holds(point / factor):
            point /= factor
        return point, point / factor
    while not holds(point * factor):
        point *= factor
    return point * factor, point
