"""Drawing from a law on the whole numbers, exactly.

    K = number of thresholds F(j) = P(K <= j) that a uniform real U has passed, minus the offset

U comes bit by bit. A table holds the thresholds to 128 bits; 64 bits of U decide but for one draw
in about 2^50. What they leave open is decided by drawing more bits, and computing the law to as
many, until it is decided: the draw has the law exactly, whatever the last bit of the table is.

Reals as whole numbers of 2^-precision, for laws that must be right to many bits.
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


TABLE_BITS = 128
FEW_GUIDE_BITS, MANY_GUIDE_BITS = 14, 18
MANY_THRESHOLDS = 1 << 15
"""From here on a guide that fits the nearest caches would leave too far to walk."""
LAST_WORD = np.uint64(2**64 - 1)


class Law(Protocol):
    """A symmetric law on the whole numbers; hashable, so that its table is made once."""

    def __hash__(self) -> int: ...

    def probabilities(self, bits: int) -> list[int]:
        """Numbers proportional to P(K = 0), P(K = 1), .. P(K = k_max).

        Partial sums divided by the total (both sides counted) are within 2^-(bits + 16) of F, and
        the mass beyond k_max is below that too.
        """


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """Thresholds to 128 bits in two words, ascending, and where to start looking.

    Args:
        high: (2 * offset,) first 64 bits of each threshold, rounded down.
        low: (2 * offset,) next 64 bits.
        offset: the largest magnitude in the table.
        guide: how many thresholds lie surely below, by the first bits of U.
        shift: how many of the 64 bits of U the guide does not look at.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    offset: int
    guide: NDArray[np.int32]
    shift: np.uint64


@lru_cache(maxsize=16)
def threshold_table(law: Law) -> ThresholdTable:
    """Tabulate a law."""
    pmf = law.probabilities(TABLE_BITS)
    words = np.frombuffer(
        b"".join(tail.to_bytes(16, "little") for tail in _tails(pmf, TABLE_BITS)), dtype="<u8"
    ).reshape(-1, 2)  # (offset, 2), P(K > j) = P(K <= -j - 1) for j = offset - 1, .., 0
    # 1 - x is the complement of x but for one unit in the last place.
    low, high = np.concatenate([words, ~words[::-1]]).T.astype(np.uint64)  # (2 * offset,) each
    # A threshold is off by one at most. That must not change its first word, on which the fast
    # path relies; it could only with a chance of 2^-62 a threshold. Nothing lies below 0 or above
    # 1, so the first word 0 ends at its upper edge alone, and the last at its lower edge.
    at_lower_edge = (low < 2) & (high > 0)
    at_upper_edge = (low > LAST_WORD - 2) & (high < LAST_WORD)
    if (at_lower_edge | at_upper_edge).any():
        raise VesperError(f"{law}: a threshold lies on the edge of a word; change the noise a bit")
    guide_bits = MANY_GUIDE_BITS if len(high) >= MANY_THRESHOLDS else FEW_GUIDE_BITS
    shift = np.uint64(64 - guide_bits)
    starts = np.arange(1 << guide_bits, dtype=np.uint64) << shift
    guide = np.searchsorted(high, starts, side="left").astype(np.int32)
    return ThresholdTable(high=high, low=low, offset=len(pmf) - 1, guide=guide, shift=shift)


def decide(law: Law, first: int, more: Callable[[], int]) -> int:
    """Give the draw whose first 64 bits are `first`; `more` gives 64 further bits at a time.

    U lies in [uniform, uniform + 1) / 2^bits and F(j) within 1 of threshold_j / 2^bits, so k is
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
    """P(K <= j) for j = -k_max .. k_max, in whole numbers of 2^-bits, off by one at most."""
    tails = _tails(pmf, bits)
    return [*tails, *((1 << bits) - 1 - tail for tail in reversed(tails)), 1 << bits]


def _tails(pmf: list[int], bits: int) -> list[int]:
    """P(K > j) = P(K <= -j - 1) for j = k_max - 1 .. 0, in whole numbers of 2^-bits, rounded down.

    One division for all: with 64 bits more than the total has, its error is below 2^-63 of a unit.
    """
    total = pmf[0] + 2 * sum(pmf[1:])
    shift = total.bit_length() + 64
    unit = (1 << bits + shift) // total
    return [passed * unit >> shift for passed in accumulate(reversed(pmf[1:]))]
