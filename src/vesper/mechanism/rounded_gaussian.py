"""The law of the noise (claim R-GRID): a Gaussian rounded to whole numbers, to 128 bits.

    K = round(t N(0, 1)),   P(K = k) = integral of the density from (k - 1/2)/t to (k + 1/2)/t
                                     = (1/t) phi(k/t) sum_j He_2j(k/t) / ((2j + 1)! (2t)^2j)

All of it in whole numbers of 2^-PRECISION: the density by its own recurrence, the Hermite
polynomials by theirs, and the total set to 1 at the end, so that no constant is needed. A threshold
is off by less than 2^-120, hence a draw by less than the number of thresholds times that.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError

PRECISION = 320
"""Bits after the point while computing."""

TAIL = 14
"""Values beyond TAIL standard deviations, of probability below 2^-142, are not drawn."""

LARGEST_SCALE = 1 << 20
"""Beyond this many grid steps a standard deviation the table would not fit caches or patience."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Inverse CDF: draw k = first index with u < threshold, minus `offset`, u of 128 bits.

    Args:
        high: (2 * offset,) first 64 bits of each threshold, ascending.
        low: (2 * offset,) next 64 bits.
        offset: the largest magnitude that is drawn.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    offset: int

    def draw(self, first: int, second: int) -> int:
        """Give the value that 128 bits, in two words, stand for: slow, exact, for ties."""
        uniform = (first << 64) + second
        passed = int(np.searchsorted(self.high, np.uint64(first), side="left"))
        while passed < len(self.high):
            if (int(self.high[passed]) << 64) + int(self.low[passed]) > uniform:
                break
            passed += 1
        return passed - self.offset


def thresholds(scale: float) -> Thresholds:
    """Tabulate P(K <= k) for k = -offset .. offset - 1 at t = `scale`."""
    if not 0.25 <= scale <= LARGEST_SCALE:
        raise InputError(
            f"Expected noise between 0.25 and {LARGEST_SCALE} grid steps, got {scale:g}."
        )
    return tabulate(probabilities(scale))


def tabulate(pmf: list[int]) -> Thresholds:
    """Turn numbers proportional to P(K = 0), P(K = 1), .. of a symmetric law into a table."""
    offset = len(pmf) - 1
    total = pmf[0] + 2 * sum(pmf[1:])
    cumulative = 0
    high = np.empty(2 * offset, dtype=np.uint64)
    low = np.empty(2 * offset, dtype=np.uint64)
    for at in range(2 * offset):
        cumulative += pmf[abs(at - offset)]
        threshold = (cumulative << 128) // total
        high[at], low[at] = threshold >> 64, threshold & (2**64 - 1)
    return Thresholds(high=high, low=low, offset=offset)


def probabilities(scale: float) -> list[int]:
    """Give numbers proportional to P(K = k) for k = 0, 1, .. up to TAIL standard deviations."""
    one = 1 << PRECISION
    step = Fraction(1) / Fraction(scale)  # the grid step in standard deviations
    half_square = fixed(step * step / 4)  # (1 / 2t)^2
    ratio = exp_minus(fixed(step * step / 2))  # phi(h) / phi(0)
    twice = ratio * ratio >> PRECISION
    density, factor = one, ratio  # phi(k h), phi((k + 1) h) / phi(k h)
    pmf = []
    for k in range(int(TAIL * scale) + 2):
        pmf.append(density * _hermite_series(fixed(k * step), half_square) >> PRECISION)
        density = density * factor >> PRECISION
        factor = factor * twice >> PRECISION
    return pmf


def _hermite_series(x: int, half_square: int) -> int:
    """Sum over j of He_2j(x) half_square^j / (2j + 1)!, until terms are below 2^-160."""
    before, hermite = 1 << PRECISION, x  # He_0, He_1
    total, power, j = before, 1 << PRECISION, 0
    while True:
        j += 1
        before = (x * hermite >> PRECISION) - (2 * j - 1) * before  # He_2j
        power = (power * half_square >> PRECISION) // (2 * j * (2 * j + 1))
        term = before * power >> PRECISION
        total += term
        hermite = (x * before >> PRECISION) - 2 * j * hermite  # He_2j+1
        if j > 4 and power << (PRECISION // 2) < (1 << PRECISION) and abs(term) < 1 << 160:
            return total


def exp_minus(x: int) -> int:
    """exp(-x) in fixed point, by its series after halving the argument."""
    halvings = 8
    x >>= halvings
    total = term = 1 << PRECISION
    for n in range(1, 80):
        term = -(term * x >> PRECISION) // n
        total += term
    for _ in range(halvings):
        total = total * total >> PRECISION
    return total


def fixed(value: Fraction) -> int:
    """Whole numbers of 2^-PRECISION, rounded down."""
    return (value.numerator << PRECISION) // value.denominator
