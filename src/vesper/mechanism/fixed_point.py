"""Reals as whole numbers of 2^-precision, for laws that must be right to many bits."""

from fractions import Fraction


def fixed(value: Fraction, precision: int) -> int:
    """Give value * 2^precision, rounded down."""
    return (value.numerator << precision) // value.denominator


def exp_minus(x: int, precision: int) -> int:
    """exp(-x) for x >= 0, by its series after halving the argument; off by less than 2^-precision.

    Sixteen guard bits take up the rounding of the series and of the squarings.
    """
    halvings = max(0, x.bit_length() - precision) + 8
    guard = 16 + halvings
    scale = precision + guard
    small = x << guard >> halvings
    total = term = 1 << scale
    n = 0
    while term:
        n += 1
        term = -(term * small >> scale) // n if term > 0 else (-term * small >> scale) // n
        total += term
    for _ in range(halvings):
        total = total * total >> scale
    return total >> guard
