"""Fewer bits for a number, by chance up or down so that its mean stays what it was.

    float16   the two float16 around x, the nearer one more often
    int8      floor(x / scale + u),  u uniform in [0, 1);  one scale a column, max |x| / 127

    E[rounded(x)] = x,     |rounded(x) - x| < the gap it lies in

Rounding comes after noise and reads nothing but what would have been sent and coins of its own, so
it is post-processing (claim POST). Coins are keyed by seed, role and step: a run that is repeated,
or gone on with, sends the same bytes, and nothing has to be remembered.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError

LARGEST_FLOAT16 = 65504.0
SMALLEST_NORMAL = 2.0**-14
LARGEST_STEP = 127
_GAP = 2.0**-24  # between float16 that are smaller still
_BITS_KEPT, _MASK = np.uint32(32 - 13), np.uint32(0xFFFFFFFF << 13 & 0xFFFFFFFF)
_PURPOSE = int.from_bytes(b"rounding", "little")  # no other draws of a run have this in their key

Floats = NDArray[np.float32]


class WireFormat(IntEnum):
    """How the entries of a tensor cross, as the byte that says so."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT8 = 2


@dataclass(frozen=True)
class Rounding:
    """How one end rounds what it sends.

    Args:
        wire: what to round to.
        seed: of the run; both sides know it.
        role: a number for this end.
    """

    wire: WireFormat = WireFormat.FLOAT32
    seed: int = 0
    role: int = 0

    def random_generator(self, step: int) -> np.random.Generator:
        """Draws for what is sent at a step: the same whenever it is asked for."""
        return np.random.default_rng((_PURPOSE, self.seed, self.role, step))


NO_ROUNDING = Rounding()


def to_float16(values: Floats, generator: np.random.Generator) -> NDArray[np.float16]:
    """Round to float16.

    | entry | result |
    | --- | --- |
    | a float16 already | itself |
    | beyond 65504 | VesperError |
    """
    if values.size and np.abs(values).max() > LARGEST_FLOAT16:
        raise VesperError(
            f"wire: a value of {np.abs(values).max():.3g} does not fit float16, expected at most "
            f"{LARGEST_FLOAT16:g}; set wire = 'float32' or lower learning_rate"
        )
    draws = generator.integers(0, 1 << 32, size=values.shape, dtype=np.uint32)
    # float32 has 13 bits of mantissa more: a draw below what they say carries into those that stay.
    carried = np.ascontiguousarray(values).view(np.uint32) + (draws >> _BITS_KEPT)
    rounded = (carried & _MASK).view(np.float32)
    small = np.abs(values) < SMALLEST_NORMAL  # where all gaps are the same
    steps = np.floor(values[small].astype(np.float64) / _GAP + draws[small] / 2.0**32)
    rounded[small] = steps * _GAP
    return rounded.astype(np.float16)


def to_int8(values: Floats, generator: np.random.Generator) -> tuple[NDArray[np.int8], Floats]:
    """Round to whole steps; give them, and the scale of each column.

    A column is all entries with the same place in their row: those of one number of an embedding.

    | column | steps | scale |
    | --- | --- | --- |
    | zero, or without entries | zero | zero |
    """
    largest = np.abs(values).max(axis=0, initial=0.0)  # all but the first dimension
    scales = np.nextafter(largest / np.float32(LARGEST_STEP), np.float32(np.inf))
    scales = np.where(largest > 0, scales, np.float32(0)).astype(np.float32)
    divisors = np.where(largest > 0, scales, np.float32(1)).astype(np.float64)
    steps = np.floor(values / divisors + generator.random(values.shape))
    return steps.astype(np.int8), scales
