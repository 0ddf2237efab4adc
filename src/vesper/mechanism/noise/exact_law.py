"""Exact draws from a law on the integers.

    K = number of thresholds F(j) = P(K <= j) that a uniform real U has passed, minus the offset

U is drawn bit by bit. A table holds the thresholds to 128 bits; 64 bits of U decide all but about
one draw in 2^50. Ties are decided by drawing more bits, and computing the law to as many bits,
until they suffice. So a draw has exactly this law, whatever the last bits of the table are.

Reals are held as integer multiples of 2^-precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError


def to_fixed_point(value: Fraction, precision: int) -> int:
    """Return value * 2^precision, rounded down."""
    return (value.numerator << precision) // value.denominator


def exp_minus(x: int, precision: int) -> int:
    """Compute exp(-x) for x >= 0 in fixed point, with an error below 2^-precision.

    The argument is halved, the series summed, the result squared as often. Sixteen guard bits
    absorb the rounding of the series and of the squarings.
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


TABLE_BITS = 128
FEW_GUIDE_BITS, MANY_GUIDE_BITS = 14, 18
MANY_THRESHOLDS = 1 << 15
"""Tables of at least this many thresholds get the larger guide, or searches would be too long."""
LAST_WORD = np.uint64(2**64 - 1)


class Law(Protocol):
    """A symmetric law on the integers; hashable, so that its table is computed once."""

    def __hash__(self) -> int: ...

    def probabilities(self, bits: int) -> list[int]:
        """Integers proportional to P(K = 0), P(K = 1), .. P(K = k_max).

        Partial sums divided by the total (both sides counted) are within 2^-(bits + 16) of F, and
        the mass beyond k_max is below that too.
        """


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """Ascending thresholds to 128 bits in two words, and where to start searching.

    Args:
        high: (2 * offset,) first 64 bits of each threshold, rounded down.
        low: (2 * offset,) next 64 bits.
        offset: the largest magnitude in the table.
        guide: how many thresholds certainly lie below U, by the first bits of U.
        shift: how many of the 64 bits of U the guide ignores.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    offset: int
    guide: NDArray[np.int32]
    shift: np.uint64


@lru_cache(maxsize=16)
def threshold_table(law: Law) -> ThresholdTable:
    """Tabulate the thresholds of a law."""
    pmf = law.probabilities(TABLE_BITS)
    words = np.frombuffer(
        b"".join(tail.to_bytes(16, "little") for tail in _tails(pmf, TABLE_BITS)), dtype="<u8"
    ).reshape(-1, 2)  # (offset, 2), P(K > j) = P(K <= -j - 1) for j = offset - 1, .., 0
    # 1 - x is the complement of x, up to one unit in the last place.
    low, high = np.concatenate([words, ~words[::-1]]).T.astype(np.uint64)  # (2 * offset,) each
    # A threshold is off by at most one. That must not change its first word, on which the fast
    # path relies; the chance that it does is 2^-62 per threshold. Nothing lies below 0 or above 1,
    # so first words of 0 matter only at their upper edge, and the largest only at their lower edge.
    at_lower_edge = (low < 2) & (high > 0)
    at_upper_edge = (low > LAST_WORD - 2) & (high < LAST_WORD)
    if (at_lower_edge | at_upper_edge).any():
        raise VesperError(f"{law}: a threshold lies on a word boundary; change the noise slightly")
    guide_bits = MANY_GUIDE_BITS if len(high) >= MANY_THRESHOLDS else FEW_GUIDE_BITS
    shift = np.uint64(64 - guide_bits)
    starts = np.arange(1 << guide_bits, dtype=np.uint64) << shift
    guide = np.searchsorted(high, starts, side="left").astype(np.int32)
    return ThresholdTable(high=high, low=low, offset=len(pmf) - 1, guide=guide, shift=shift)


def decide(law: Law, first: int, more: Callable[[], int]) -> int:
    """Return the draw whose first 64 bits are `first`; `more` returns 64 further bits per call.

    U lies in [uniform, uniform + 1) / 2^bits, and 2^bits F(j) within 1 of threshold_j, so k is
    certain when both ends of that interval have passed exactly k thresholds whatever the error.
    """
    uniform, bits = first, 64
    while True:
        uniform, bits = (uniform << 64) + more(), bits + 64
        pmf = law.probabilities(bits)
        offset = len(pmf) - 1
        thresholds = _cumulative(pmf, bits)
        surely = sum(threshold + 1 <= uniform for threshold in thresholds)
        perhaps = sum(threshold - 1 <= uniform for threshold in thresholds)
        if surely == perhaps <= 2 * offset:
            return surely - offset


def _cumulative(pmf: list[int], bits: int) -> list[int]:
    """P(K <= j) for j = -k_max .. k_max, in units of 2^-bits, off by at most one."""
    tails = _tails(pmf, bits)
    return [*tails, *((1 << bits) - 1 - tail for tail in reversed(tails)), 1 << bits]


def _tails(pmf: list[int], bits: int) -> list[int]:
    """P(K > j) = P(K <= -j - 1) for j = k_max - 1 .. 0, in units of 2^-bits, rounded down.

    One division serves all: with 64 bits more than the total has, its error is below 2^-63 of a
    unit.
    """
    total = pmf[0] + 2 * sum(pmf[1:])
    shift = total.bit_length() + 64
    unit = (1 << bits + shift) // total
    return [passed * unit >> shift for passed in accumulate(reversed(pmf[1:]))]
