"""The law of noisy counts: a two-sided geometric distribution, to 128 bits.

    P(K = k) = tanh(epsilon / 2) exp(-epsilon |k|),   k whole

Adding it to whole counts of L1 sensitivity 1 is (epsilon, 0); for sensitivity s use epsilon / s.
Whole numbers in, whole numbers out: there is no floating-point side channel.
"""

import math
from fractions import Fraction

from vesper.errors import InputError
from vesper.mechanism.rounded_gaussian import PRECISION, Thresholds, exp_minus, fixed, tabulate

TAIL_BITS = 142
"""Values of probability below 2^-TAIL_BITS are not drawn."""


def thresholds(epsilon: float) -> Thresholds:
    """Tabulate P(K <= k) far into both tails."""
    if not 1e-4 <= epsilon <= 100:
        raise InputError(f"Expected an epsilon a count between 0.0001 and 100, got {epsilon:g}.")
    ratio = exp_minus(fixed(Fraction(epsilon)))
    pmf = [1 << PRECISION]
    for _ in range(math.ceil(TAIL_BITS * math.log(2) / epsilon)):
        pmf.append(pmf[-1] * ratio >> PRECISION)
    return tabulate(pmf)
