"""Frozen facts: what was released from a graph, and what that costs a node.

    cost of an event for node v  =  mu^2 that an edge at v can be charged for at v's end
    an edge {a, b} has spent     =  (cost at a) + (cost at b)                     (claim L-FILTER)

Costs are whole numbers of `UNIT`, rounded up, so that sums are exact, comparisons are exact, and
any rounding is against ourselves. An event is never changed and never removed.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from vesper.errors import InputError
from vesper.privacy.pure import charge_of_pure

UNIT = 1 << 40
"""A mu^2 of 1 is this many units: 2^-40 is far below what any release costs."""


SMALLEST_NOISE, LARGEST_NOISE = 1 / 256, 1024.0
"""What can be drawn on the grid: a quarter of a step, and a table that is made in half a minute."""


LARGEST_PURE = 1000.0
"""No pure epsilon above this is a promise of anything."""


class Event(Protocol):
    """Something that was computed from edges and may leave the data party."""

    @property
    def cost(self) -> int:
        """Units of mu^2 charged to each receiver."""

    @property
    def facts(self) -> dict[str, float | str]:
        """What the ledger writes down, all of it public."""


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """Rows moved by at most `endpoint_shift` at each end of one edge, plus N(0, noise_std^2).

    The event is mu-GDP for one edge with mu^2 = endpoint_shift^2 / noise_std^2 an endpoint that is
    a receiver (claim R-SUM: the shift of a neighbour sum of unit messages is 1).
    """

    noise_std: float
    endpoint_shift: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_std", float(self.noise_std))
        object.__setattr__(self, "endpoint_shift", float(self.endpoint_shift))
        if not SMALLEST_NOISE <= self.noise_std <= LARGEST_NOISE:
            raise InputError(
                f"Expected noise_std={self.noise_std} between {SMALLEST_NOISE} and {LARGEST_NOISE}."
            )
        if not (math.isfinite(self.endpoint_shift) and self.endpoint_shift > 0):
            raise InputError(f"Expected endpoint_shift={self.endpoint_shift} > 0 and finite.")

    @property
    def cost(self) -> int:
        """Units of mu^2 a receiving endpoint, rounded up in exact arithmetic."""
        return math.ceil(UNIT * (Fraction(self.endpoint_shift) / Fraction(self.noise_std)) ** 2)

    @property
    def facts(self) -> dict[str, float | str]:
        """The noise and the shift."""
        return {
            "kind": "gaussian release",
            "noise_std": self.noise_std,
            "endpoint_shift": self.endpoint_shift,
        }


@dataclass(frozen=True, kw_only=True)
class PureRelease:
    """Something that is (epsilon, 0) for one edge, such as noisy counts (claim PURE-TO-GDP).

    Which nodes it speaks of is not asked: every node is charged half of its mu^2.
    """

    epsilon: float
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not 0 < self.epsilon <= LARGEST_PURE:
            raise InputError(f"Expected epsilon={self.epsilon} > 0 and at most {LARGEST_PURE:g}.")

    @property
    def cost(self) -> int:
        """Units of mu^2 a node, rounded up."""
        return max(1, math.ceil(UNIT * Fraction(charge_of_pure(epsilon=self.epsilon))))

    @property
    def facts(self) -> dict[str, float | str]:
        """What was counted, and its pure epsilon."""
        return {"kind": "pure release", "what": self.what, "epsilon": self.epsilon}
