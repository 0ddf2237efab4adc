"""The law of noisy counts: a two-sided geometric distribution.

    P(K = k) = tanh(epsilon / 2) exp(-epsilon |k|),   k an integer

Adding it to integer counts of L1 sensitivity 1 is (epsilon, 0); for sensitivity s use epsilon / s.
Integers in, integers out: there is no floating-point side channel.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from vesper.errors import InputError
from vesper.mechanism.noise.exact_law import exp_minus, to_fixed_point

GUARD_BITS = 64


@dataclass(frozen=True)
class DiscreteLaplace:
    """Two-sided geometric noise."""

    epsilon: float

    def __post_init__(self) -> None:
        if not 1e-4 <= self.epsilon <= 100:
            raise InputError(
                f"Expected an epsilon per count between 0.0001 and 100, got {self.epsilon:g}."
            )

    def probabilities(self, bits: int) -> list[int]:
        """Integers proportional to exp(-epsilon k), until the tail is below 2^-(bits + 32)."""
        precision = bits + GUARD_BITS
        ratio = exp_minus(to_fixed_point(Fraction(self.epsilon), precision), precision)
        pmf = [1 << precision]
        for _ in range(math.ceil((bits + 32) * math.log(2) / self.epsilon)):
            pmf.append(pmf[-1] * ratio >> precision)
        return pmf
