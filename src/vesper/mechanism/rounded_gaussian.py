"""The law of release noise (claim R-GRID): a Gaussian rounded to whole numbers.

    K = round(t N(0, 1)),   P(K = k) = integral of the density from (k - 1/2)/t to (k + 1/2)/t
                                     = (1/t) phi(k/t) sum_j G_2j / (2j + 1)
    G_n = He_n(k/t) / (n! (2t)^n),   G_{n+1} = (k/t G_n - 1/(2t) G_{n-1}) / (2t (n + 1))

The second line is the Taylor series of the density around k/t, integrated over its cell. All of it
is computed in whole numbers, the density by its own recurrence; as only proportions matter, no
constant is needed. The G_n stay below exp(k/(2t^2) + 1/(8t^2)), so nothing is lost to large terms.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from vesper.errors import InputError
from vesper.mechanism.fixed_point import exp_minus, fixed

GUARD_BITS = 192
LARGEST_SCALE = 1 << 20
"""Beyond this many grid steps a standard deviation the table would not fit caches or patience."""


@dataclass(frozen=True)
class RoundedGaussian:
    """round(scale * N(0, 1))."""

    scale: float

    def __post_init__(self) -> None:
        if not 0.25 <= self.scale <= LARGEST_SCALE:
            raise InputError(
                f"Expected noise between 0.25 and {LARGEST_SCALE} grid steps, got {self.scale:g}."
            )

    def probabilities(self, bits: int) -> list[int]:
        """Numbers proportional to P(K = k), k = 0, 1, .. until the tail is below 2^-(bits + 32)."""
        precision = bits + GUARD_BITS
        step = Fraction(1) / Fraction(self.scale)  # the grid step in standard deviations
        square = fixed(step * step / 4, precision)  # 1 / (2t)^2
        ratio = exp_minus(fixed(step * step / 2, precision), precision)  # phi(h) / phi(0)
        twice = ratio * ratio >> precision
        density, factor = 1 << precision, ratio  # phi(k h), phi((k + 1) h) / phi(k h)
        pmf = []
        for k in range(math.ceil(tail_of(bits + 32) * self.scale) + 2):
            product = fixed(k * step * step / 2, precision)  # (k/t) / (2t)
            pmf.append(density * _series(product, square, precision) >> precision)
            density = density * factor >> precision
            factor = factor * twice >> precision
        return pmf


def tail_of(bits: int) -> float:
    """Standard deviations beyond which there is less than 2^-bits: P(N > x) <= exp(-x^2/2) / 2."""
    return math.sqrt(2 * math.log(2) * bits)


def _series(product: int, square: int, precision: int) -> int:
    """Sum of G_2j / (2j + 1), down to the last bit.

    Once n exceeds twice product + square, each G_n is at most half the larger of the two before, so
    two that are nothing are followed by nothing.
    """
    before, current = 1 << precision, product  # G_0, G_1
    total, n = before, 1
    enough = (2 * (product + square) >> precision) + 1
    while n <= enough or abs(before) > 1 or abs(current) > 1:
        before, current = current, (product * current - square * before >> precision) // (n + 1)
        n += 1
        if n % 2 == 0:
            total += current // (n + 1)
    return total
