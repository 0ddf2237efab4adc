"""Drawing from a law on the whole numbers, exactly.

    K = number of thresholds F(j) = P(K <= j) that a uniform real U has passed, minus the offset

U comes bit by bit. A table holds the thresholds to 128 bits; 64 bits of U decide but for one draw
in about 2^50. What they leave open is decided by drawing more bits, and computing the law to as
many, until it is decided: the draw has the law exactly, whatever the last bit of the table is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError

TABLE_BITS = 128
GUIDE_BITS = 16


class Law(Protocol):
    """A symmetric law on the whole numbers; hashable, so that its table is made once."""

    def __hash__(self) -> int: ...

    def probabilities(self, bits: int) -> list[int]:
        """Numbers proportional to P(K = 0), P(K = 1), .. P(K = k_max).

        Partial sums divided by the total (both sides counted) are within 2^-(bits + 16) of F, and
        the mass beyond k_max is below that too.
        """


@dataclass(frozen=True, eq=False)
class Table:
    """Thresholds to 128 bits in two words, ascending, and where to start looking.

    Args:
        high: (2 * offset,) first 64 bits of each threshold, rounded down.
        low: (2 * offset,) next 64 bits.
        offset: the largest magnitude in the table.
        guide: (65536,) how many thresholds lie surely below, by the first 16 bits of U.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    offset: int
    guide: NDArray[np.int32]


@lru_cache(maxsize=16)
def table_of(law: Law) -> Table:
    """Tabulate a law."""
    pmf = law.probabilities(TABLE_BITS)
    offset = len(pmf) - 1
    # The last threshold is 1; the largest number of 128 bits stands for all within 2^-128 of it.
    cumulative = [min(t, 2**TABLE_BITS - 1) for t in _cumulative(pmf, TABLE_BITS)[:-1]]
    high = np.array([threshold >> 64 for threshold in cumulative], dtype=np.uint64)
    low = np.array([threshold & (2**64 - 1) for threshold in cumulative], dtype=np.uint64)
    # A threshold is off by one at most. That must not change its first word, on which the fast
    # path relies; it could only with a chance of 2^-62 a threshold.
    inner = (high > 0) & (high < np.uint64(2**64 - 1))
    if ((low[inner] < 2) | (low[inner] > np.uint64(2**64 - 3))).any():
        raise VesperError(f"{law}: a threshold lies on the edge of a word; change the noise a bit")
    starts = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    guide = np.searchsorted(high, starts, side="left").astype(np.int32)
    return Table(high=high, low=low, offset=offset, guide=guide)


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
    """P(K <= j) for j = -k_max .. k_max, in whole numbers of 2^-bits, rounded down."""
    total = pmf[0] + 2 * sum(pmf[1:])
    passed, thresholds = 0, []
    for j in range(-len(pmf) + 1, len(pmf)):
        passed += pmf[abs(j)]
        thresholds.append((passed << bits) // total)
    return thresholds
