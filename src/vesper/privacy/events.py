"""Frozen facts: what was released from a graph, and what that costs a node.

    cost of an event for node v  =  mu^2 that an edge at v can be charged for at v's end
    an edge {a, b} has spent     =  (cost at a) + (cost at b)                     (claim L-FILTER)

Costs are floats, rounded up from exact fractions. An event is never changed and never removed.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from vesper.errors import InputError
from vesper.privacy.accounting.checks import float_up
from vesper.privacy.accounting.pure import charge_of_pure

GAUSSIAN_KIND, CLIPPED_KIND, PURE_KIND = "gaussian release", "clipped release", "pure release"

UNPROTECTED_KIND = "unprotected"
"""Of an entry, not of an event: edges were used by a run that certifies nothing."""

SUM = "sum"
"""Of neighbours' messages: what is released unless an event names another aggregation."""

SMALLEST_NOISE, LARGEST_NOISE = 1 / 256, 1024.0
"""What can be drawn on the grid: a quarter of a step, and a table that is made in two seconds."""


LARGEST_PURE = 1000.0
"""No pure epsilon above this is a promise of anything."""


class Event(Protocol):
    """Something that was computed from edges and may leave the data party."""

    @property
    def cost(self) -> float:
        """The mu^2 charged to each receiver."""

    @property
    def facts(self) -> dict[str, float | str]:
        """What the ledger writes down, all of it public."""


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """Rows moved by at most `endpoint_shift` at each end of one edge, plus N(0, noise_std^2).

    The event is mu-GDP for one edge with mu^2 = endpoint_shift^2 / noise_std^2 an endpoint that is
    a receiver (claim R-SUM: the shift of a neighbour sum of unit messages is 1). An `aggregation`
    that moves other rows too has every node as a receiver, and moves them all together by at most
    sqrt 2 endpoint_shift.
    """

    noise_std: float
    endpoint_shift: float = 1.0
    aggregation: str = SUM

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_std", float(self.noise_std))
        object.__setattr__(self, "endpoint_shift", float(self.endpoint_shift))
        _expect_noise(self.noise_std)
        if not (math.isfinite(self.endpoint_shift) and self.endpoint_shift > 0):
            raise InputError(f"Expected endpoint_shift={self.endpoint_shift} > 0 and finite.")

    @property
    def cost(self) -> float:
        """The mu^2 of a receiving endpoint, rounded up from the exact fraction."""
        return float_up((Fraction(self.endpoint_shift) / Fraction(self.noise_std)) ** 2)

    @property
    def facts(self) -> dict[str, float | str]:
        """The noise, the shift, and what was made of the messages where it is not their sum."""
        named = {} if self.aggregation == SUM else {"aggregation": self.aggregation}
        return {
            "kind": GAUSSIAN_KIND,
            "noise_std": self.noise_std,
            "endpoint_shift": self.endpoint_shift,
            **named,
        }


@dataclass(frozen=True, kw_only=True)
class ClippedRelease:
    """Sums of unit messages, each row clipped to `row_norm` before N(0, noise_std^2) is added.

    Clipping brings no two rows further apart, so an edge moves each end by at most 1 as before; and
    a node without its edges moves its own row by at most `row_norm` (claim N-NODE). Rounding what
    was clipped to a grid brings two rows further apart by at most `rounding`.
    """

    noise_std: float
    row_norm: float
    rounding: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_std", float(self.noise_std))
        object.__setattr__(self, "row_norm", float(self.row_norm))
        object.__setattr__(self, "rounding", float(self.rounding))
        _expect_noise(self.noise_std)
        if not 0 <= self.rounding <= 1:
            raise InputError(f"Expected rounding={self.rounding} from 0 to 1.")
        if not (math.isfinite(self.row_norm) and self.row_norm >= 1):
            raise InputError(f"Expected row_norm={self.row_norm} >= 1 and finite.")

    @property
    def cost(self) -> float:
        """The mu^2 of a receiver whose row moves by 1, rounded up from the exact fraction."""
        return float_up(((1 + Fraction(self.rounding)) / Fraction(self.noise_std)) ** 2)

    @property
    def facts(self) -> dict[str, float | str]:
        """The noise, the longest row, and what rounding adds."""
        return {
            "kind": CLIPPED_KIND,
            "noise_std": self.noise_std,
            "row_norm": self.row_norm,
            "rounding": self.rounding,
        }


@dataclass(frozen=True, kw_only=True)
class PureRelease:
    """Something that is (epsilon, 0) for one edge, such as noisy counts.

    It is charged to every node, whichever it speaks of. Before the first release of another kind
    its epsilon is taken from the budget plainly (claim L-FILTER); after it, every node pays half of
    its mu^2 (claim PURE-TO-GDP).
    """

    epsilon: float
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not 0 < self.epsilon <= LARGEST_PURE:
            raise InputError(f"Expected epsilon={self.epsilon} > 0 and at most {LARGEST_PURE:g}.")

    @property
    def cost(self) -> float:
        """The mu^2 of a node, rounded up; above 0 however small epsilon is."""
        return math.nextafter(charge_of_pure(epsilon=self.epsilon), math.inf)

    @property
    def facts(self) -> dict[str, float | str]:
        """What was counted, and its pure epsilon."""
        return {"kind": PURE_KIND, "what": self.what, "epsilon": self.epsilon}


def _expect_noise(noise_std: float) -> None:
    if not SMALLEST_NOISE <= noise_std <= LARGEST_NOISE:
        raise InputError(
            f"Expected noise_std={noise_std} between {SMALLEST_NOISE} and {LARGEST_NOISE}."
        )
