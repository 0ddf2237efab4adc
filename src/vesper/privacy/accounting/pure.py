"""Pure epsilon as mu: what a Laplace count costs next to Gaussian releases.

    mu = 2 Phi^{-1}(e^epsilon / (1 + e^epsilon)),   or   erf(mu / (2 sqrt 2)) = tanh(epsilon / 2)

That is sqrt(pi / 2) epsilon for small epsilon and close to sqrt(8 epsilon) for large epsilon.

Laplace noise for counts, which is pure epsilon without delta:

    scale = l1_sensitivity / epsilon

is epsilon-DP for a vector of counts whose l1 distance between graphs that differ by one edge is at
most `l1_sensitivity` (Dwork et al. 2006). For the cumulative degree counts #{degree >= k} it is 2:
each endpoint moves one of them by 1. For the plain degree histogram it is 4: each endpoint leaves
one bin and enters the next.
"""

import math

from vesper.privacy.accounting.gaussian import log_tail
from vesper.privacy.accounting.participation import EDGE_ROWS, ROUND_UP
from vesper.privacy.accounting.safe_numbers import (
    bracket,
    expect_not_negative,
    expect_positive,
    safe_side,
)

CUMULATIVE_DEGREES_L1 = 2.0
DEGREE_HISTOGRAM_L1 = 4.0


def laplace_scale_for(*, l1_sensitivity: float, epsilon: float) -> float:
    """Scale of the noise for a finite epsilon, rounded up; always above 0.

    >>> laplace_scale_for(l1_sensitivity=2.0, epsilon=0.5)
    4.000000000000001
    """
    expect_positive("l1_sensitivity", l1_sensitivity)
    expect_positive("epsilon", epsilon)
    return math.nextafter(l1_sensitivity / epsilon, math.inf)


def laplace_epsilon_for(*, l1_sensitivity: float, scale: float) -> float:
    """Epsilon of the noise, rounded up; inf without noise."""
    expect_positive("l1_sensitivity", l1_sensitivity)
    expect_not_negative("scale", scale)
    if scale == 0:
        return math.inf
    return math.nextafter(l1_sensitivity / scale, math.inf)


LARGE_EPSILON = 1.0


def mu_of_pure(*, epsilon: float) -> float:
    """Smallest mu for which every epsilon-DP mechanism is mu-GDP, rounded up.

    Claim: PURE-TO-GDP. With a = 1 / (1 + e^epsilon), the trade-off function of epsilon-DP,
        f(t) = max(0, 1 - e^epsilon t, e^-epsilon (1 - t)), is the broken line through (0, 1),
        (a, a) and (1, 0). G_mu(t) = Phi(Phi^{-1}(1 - t) - mu) is convex, passes through (0, 1)
        and (1, 0), and for Phi(-mu/2) = a also through (a, a). A convex function lies below its
        chords, so G_mu <= f: the mechanism is mu-GDP and composes with releases in one filter.
    Relation: the one for which epsilon was proved.
    Assumes: pure epsilon-DP, delta = 0.
    Moves: nothing; a conversion.
    Tight: yes, randomised response attains f, and f >= G_mu at a forces this mu.
    Proof: docs/claims/PURE-TO-GDP.md.

    Raises:
        InputError: epsilon is negative or not a number.
    """
    expect_not_negative("epsilon", epsilon)
    if epsilon == 0:
        return 0.0
    if math.isinf(epsilon):
        return math.inf

    if epsilon <= LARGE_EPSILON:
        goal = math.tanh(epsilon / 2) * (1 + 2.0**-47)

        def holds(half: float) -> bool:
            return math.erf(half / math.sqrt(2)) >= goal
    else:
        # log a = -log(1 + e^epsilon); the tail keeps its precision where erf rounds to 1
        goal = -(epsilon + math.log1p(math.exp(-epsilon))) * (1 + 2.0**-47)

        def holds(half: float) -> bool:
            return log_tail(half) * (1 - 2.0**-47) <= goal

    safe, unsafe = bracket(holds, start=epsilon, factor=2.0)
    return 2 * safe_side(holds, safe=safe, unsafe=unsafe)


def charge_of_pure(*, epsilon: float, rows: float = EDGE_ROWS) -> float:
    """Charge of every node for an epsilon-DP release, such that `rows` nodes together pay mu^2."""
    mu = mu_of_pure(epsilon=epsilon)
    return mu * mu / rows * ROUND_UP
