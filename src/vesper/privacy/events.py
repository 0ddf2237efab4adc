"""Events that can be charged: what is released from a graph, and what that costs a node.

    cost of an event at node v   =  mu^2 that v is charged
    an edge {a, b} has spent     =  (cost at a) + (cost at b)                     (claim L-FILTER)

Costs are floats, rounded up from exact fractions. Events are immutable.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from vesper.errors import InputError
from vesper.privacy.accounting.pure import charge_of_pure
from vesper.privacy.accounting.safe_numbers import float_up

GAUSSIAN_KIND, CLIPPED_KIND, PURE_KIND = "gaussian release", "clipped release", "pure release"

UNPROTECTED_KIND = "unprotected"
"""Kind of a ledger entry, not of an event: a run that certifies nothing used the edges."""

SUM = "sum"
"""Sum of neighbours' messages: what is released unless an event names another aggregation."""

SMALLEST_NOISE, LARGEST_NOISE = 1 / 256, 1024.0
"""Noise that can be drawn: from 1/4 of a grid step up to a table that is built in two seconds."""

LARGEST_PURE = 1000.0
"""Largest pure epsilon; a larger one would guarantee nothing."""


class Event(Protocol):
    """A value computed from edges that may leave the data party once it is charged."""

    @property
    def cost(self) -> float:
        """The mu^2 charged to each receiver."""

    @property
    def facts(self) -> dict[str, float | str]:
        """What the ledger records; all of it is public."""


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """Rows that one edge moves by at most `endpoint_shift` at each end, plus N(0, noise_std^2).

    The event is mu-GDP for one edge, with mu^2 = endpoint_shift^2 / noise_std^2 per endpoint that
    is a receiver (claim R-SUM: the shift of a neighbour sum of unit-norm messages is 1). An
    `aggregation` that moves other rows too has every node as a receiver, and one edge moves all
    rows together by at most sqrt 2 endpoint_shift.
    """

    noise_std: float
    endpoint_shift: float = 1.0
    aggregation: str = SUM

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_std", float(self.noise_std))
        object.__setattr__(self, "endpoint_shift", float(self.endpoint_shift))
        _expect_noise(self.noise_std)
        if not (math.isfinite(self.endpoint_shift) and self.endpoint_shift > 0):
            raise InputError(f"Expected a finite endpoint_shift > 0, got {self.endpoint_shift}.")

    @property
    def cost(self) -> float:
        """The mu^2 of a receiving endpoint, rounded up from the exact fraction."""
        return float_up((Fraction(self.endpoint_shift) / Fraction(self.noise_std)) ** 2)

    @property
    def facts(self) -> dict[str, float | str]:
        """Noise, shift, and the aggregation if it is not a sum."""
        named = {} if self.aggregation == SUM else {"aggregation": self.aggregation}
        return {
            "kind": GAUSSIAN_KIND,
            "noise_std": self.noise_std,
            "endpoint_shift": self.endpoint_shift,
            **named,
        }


@dataclass(frozen=True, kw_only=True)
class ClippedRelease:
    """Sums of unit-norm messages, each row clipped to `row_norm` before N(0, noise_std^2) is added.

    Clipping moves no two rows further apart, so one edge still moves each end by at most 1, and
    removing all edges of a node moves its own row by at most `row_norm` (claim N-NODE). Rounding
    clipped rows to a grid moves two rows further apart by at most `rounding`.
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
            raise InputError(f"Expected a rounding from 0 to 1, got {self.rounding}.")
        if not (math.isfinite(self.row_norm) and self.row_norm >= 1):
            raise InputError(f"Expected a finite row_norm >= 1, got {self.row_norm}.")

    @property
    def cost(self) -> float:
        """The mu^2 of a receiver whose row moves by 1, rounded up from the exact fraction."""
        return float_up(((1 + Fraction(self.rounding)) / Fraction(self.noise_std)) ** 2)

    @property
    def facts(self) -> dict[str, float | str]:
        """Noise, largest norm of a row, and what rounding adds to it."""
        return {
            "kind": CLIPPED_KIND,
            "noise_std": self.noise_std,
            "row_norm": self.row_norm,
            "rounding": self.rounding,
        }


@dataclass(frozen=True, kw_only=True)
class PureRelease:
    """A release that is (epsilon, 0)-DP for one edge, such as noisy counts.

    It is charged to every node, whichever nodes it is about. Before the first release of another
    kind its epsilon is subtracted from the budget (claim L-FILTER); after that, every node is
    charged half of its mu^2 (claim PURE-TO-GDP).
    """

    epsilon: float
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not 0 < self.epsilon <= LARGEST_PURE:
            raise InputError(
                f"Expected epsilon > 0 and at most {LARGEST_PURE:g}, got {self.epsilon}."
            )

    @property
    def cost(self) -> float:
        """The mu^2 of a node, rounded up; above 0 however small epsilon is."""
        return math.nextafter(charge_of_pure(epsilon=self.epsilon), math.inf)

    @property
    def facts(self) -> dict[str, float | str]:
        """What was released, and its pure epsilon."""
        return {"kind": PURE_KIND, "what": self.what, "epsilon": self.epsilon}


def _expect_noise(noise_std: float) -> None:
    if not SMALLEST_NOISE <= noise_std <= LARGEST_NOISE:
        raise InputError(
            f"Expected noise_std between {SMALLEST_NOISE} and {LARGEST_NOISE}, got {noise_std}."
        )
