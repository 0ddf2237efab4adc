"""Bisection that ends on the safe side, whatever rounding does to the function.

The result is always a point at which `holds` was called and returned true. An interpolated point,
or one that is merely within a tolerance of the root, is never returned.
"""

from collections.abc import Callable

FULL_PRECISION = 2.0**-51


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
