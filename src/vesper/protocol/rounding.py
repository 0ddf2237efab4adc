"""Stochastic rounding to fewer bits, which keeps the mean of every number.

    float16   one of the two float16 around x, the nearer one with higher probability
    int8      floor(x / scale + u),  u uniform in [0, 1);  one scale per column, max |x| / 127

    E[rounded(x)] = x,     |rounded(x) - x| < the gap it lies in

Rounding comes after noise and reads nothing but the values to send and its own random draws, so it
is post-processing (claim POST). Draws are keyed by seed, role and step: a run that is repeated or
resumed sends the same bytes, without any stored state.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError

LARGEST_FLOAT16 = 65504.0
SMALLEST_NORMAL = 2.0**-14
LARGEST_STEP = 127
_GAP = 2.0**-24  # between subnormal float16
_BITS_KEPT, _MASK = np.uint32(32 - 13), np.uint32(0xFFFFFFFF << 13 & 0xFFFFFFFF)
_PURPOSE = int.from_bytes(b"rounding", "little")  # in the key of no other draws of a run

Floats = NDArray[np.float32]


class WireFormat(IntEnum):
    """Format of the entries of a tensor, as the byte that is sent."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT8 = 2


@dataclass(frozen=True)
class Rounding:
    """How one end rounds the tensors that it sends.

    Args:
        wire: format to round to.
        seed: seed of the run, known to both sides.
        role: number of this end.
    """

    wire: WireFormat = WireFormat.FLOAT32
    seed: int = 0
    role: int = 0

    def random_generator(self, step: int) -> np.random.Generator:
        """Return the generator for a step; it always yields the same draws."""
        return np.random.default_rng((_PURPOSE, self.seed, self.role, step))


NO_ROUNDING = Rounding()


def to_float16(values: Floats, generator: np.random.Generator) -> NDArray[np.float16]:
    """Round to float16; an entry that is a float16 already stays as it is.

    Raises:
        VesperError: an entry is beyond 65504.
    """
    if values.size and np.abs(values).max() > LARGEST_FLOAT16:
        raise VesperError(
            f"wire: a value of {np.abs(values).max():.3g} does not fit float16, expected at most "
            f"{LARGEST_FLOAT16:g}; set wire = 'float32' or lower learning_rate"
        )
    draws = generator.integers(0, 1 << 32, size=values.shape, dtype=np.uint32)
    # float32 has 13 more mantissa bits: adding 13 random bits carries into the remaining ones with
    # the probability that unbiased rounding needs.
    carried = np.ascontiguousarray(values).view(np.uint32) + (draws >> _BITS_KEPT)
    rounded = (carried & _MASK).view(np.float32)
    small = np.abs(values) < SMALLEST_NORMAL  # where all gaps are equal
    steps = np.floor(values[small].astype(np.float64) / _GAP + draws[small] / 2.0**32)
    rounded[small] = steps * _GAP
    return rounded.astype(np.float16)


def to_int8(values: Floats, generator: np.random.Generator) -> tuple[NDArray[np.int8], Floats]:
    """Round to whole steps; return them and the scale of each column.

    A column is all entries at the same position of their row, so one coordinate of an embedding. A
    column of zeros, or without entries, has steps and scale 0.
    """
    largest = np.abs(values).max(axis=0, initial=0.0)  # all but the first dimension
    scales = np.nextafter(largest / np.float32(LARGEST_STEP), np.float32(np.inf))
    scales = np.where(largest > 0, scales, np.float32(0)).astype(np.float32)
    divisors = np.where(largest > 0, scales, np.float32(1)).astype(np.float64)
    steps = np.floor(values / divisors + generator.random(values.shape))
    return steps.astype(np.int8), scales
