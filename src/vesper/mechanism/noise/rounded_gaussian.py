"""The law of release noise (claim R-GRID): a Gaussian rounded to integers.

    K = round(t N(0, 1)),   P(K = k) = integral of the density from (k - 1/2)/t to (k + 1/2)/t
                                     = (1/t) phi(k/t) sum_j G_2j / (2j + 1)
    G_n = He_n(k/t) / (n! (2t)^n),   G_{n+1} = (k/t G_n - 1/(2t) G_{n-1}) / (2t (n + 1))

The second line is the Taylor series of the density around k/t, integrated over its cell. All of it
is computed in fixed point; as only proportions matter, no constant is needed. The G_n stay below
exp(k/(2t^2) + 1/(8t^2)), so no precision is lost to large terms.

Large noise has millions of cells, and neighbouring cells are nearly equal. There the series is
summed only for the first few cells of each block, and the polynomial through them is extrapolated
over the rest by adding differences: Newton's formula, with a known remainder (`_degree_for`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice, pairwise, repeat

from vesper.errors import InputError
from vesper.mechanism.noise.exact_law import exp_minus, to_fixed_point

GUARD_BITS = 192
"""Guard bits: more than the terms of the series can grow at the smallest noise."""

CELLS_PER_BLOCK = 1024
"""Cells covered by one polynomial."""

MAX_POLYNOMIAL_DEGREE = 64
"""Largest degree of that polynomial; noise that needs more, below 1000 steps, uses no blocks."""

BLOCK_GUARD_BITS = 64
"""Guard bits where blocks are used: no term of the series is above 2 there."""

LARGEST_SCALE = 1 << 20
"""Largest standard deviation in grid steps; larger tables would be too big and too slow."""


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
        """Integers proportional to P(K = k), k >= 0, until the tail is below 2^-(bits + 32)."""
        count = math.ceil(tail_of(bits + 32) * self.scale) + 2
        degree = _degree_for(CELLS_PER_BLOCK / self.scale, bits + 32)
        if degree > MAX_POLYNOMIAL_DEGREE:
            return list(self._cells(0, count, bits + GUARD_BITS))
        # An error of one unit in each summed cell grows to this many units at the end of a block.
        growth = sum(math.comb(CELLS_PER_BLOCK, n) << n for n in range(degree + 1))
        precision = bits + BLOCK_GUARD_BITS + growth.bit_length()
        pmf: list[int] = []
        for start in range(0, count, CELLS_PER_BLOCK):
            pmf += extended(list(self._cells(start, degree + 1, precision)), CELLS_PER_BLOCK)
        return pmf[:count]

    def _cells(self, start: int, count: int, precision: int) -> Iterator[int]:
        """Yield t sqrt(2 pi) P(K = k) for k = start, start + 1, .. by the series."""
        step = Fraction(1) / Fraction(self.scale)  # the grid step in standard deviations
        square = to_fixed_point(step * step / 4, precision)  # 1 / (2t)^2
        density = exp_minus(
            to_fixed_point((start * step) ** 2 / 2, precision), precision
        )  # phi(kh)/phi(0)
        factor = exp_minus(to_fixed_point((2 * start + 1) * step * step / 2, precision), precision)
        twice = exp_minus(to_fixed_point(step * step, precision), precision)
        slope = to_fixed_point(
            step * step / 2, precision + 32
        )  # k < 2^32, so k * slope >> 32 is precise
        for k in range(start, start + count):
            product = k * slope >> 32  # (k/t) / (2t)
            yield density * _series(product, square, precision) >> precision
            density = density * factor >> precision  # phi((k + 1) h) / phi(k h) is the factor
            factor = factor * twice >> precision


def tail_of(bits: int) -> float:
    """Standard deviations with a tail below 2^-bits, as P(N > x) <= exp(-x^2/2) / 2."""
    return math.sqrt(2 * math.log(2) * bits)


def extended(values: list[int], count: int) -> list[int]:
    """Extend the polynomial through `values` at 0, 1, .. to `count` points.

    >>> extended([0, 1, 4], 6)
    [0, 1, 4, 9, 16, 25]
    """
    leading = []  # the differences of order 0, 1, .. at point 0
    while values:
        leading.append(values[0])
        values = [after - before for before, after in pairwise(values)]
    column: Iterator[int] = repeat(leading[-1])
    for difference in reversed(leading[:-1]):
        column = accumulate(column, initial=difference)
    return list(islice(column, count))


def _degree_for(width: float, bits: int) -> int:
    """Degree of a polynomial that is accurate to 2^-bits over a block `width` deviations wide.

    Newton: P(K = k) differs from it by C(k, n) h^n times an n-th derivative of the cell's mass,
    n = degree + 1. With |He_n(x)| phi(x) <= 0.44 sqrt(n!) exp(-x^2/4) (Cramer) that is less than
    1.1 width^n / sqrt(n!), in units of the largest cell.
    """
    n = 1
    while (
        n <= MAX_POLYNOMIAL_DEGREE + 1
        and n * math.log2(width) - math.lgamma(n + 1) / math.log(4) > -bits
    ):
        n += 1
    return n - 1


def _series(product: int, square: int, precision: int) -> int:
    """Sum of G_2j / (2j + 1), down to the last bit.

    Once n exceeds 2 (product + square), each G_n is at most half the larger of the two before it,
    so after two terms that vanish all terms vanish.
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
