"""Laplace noise for counts: pure epsilon, no delta.

    scale = l1_sensitivity / epsilon

is epsilon-DP for a vector of counts whose l1 distance between graphs that differ by one edge is at
most `l1_sensitivity` (Dwork et al. 2006). The cumulative degree counts #{degree >= k} have 2: each
endpoint moves one of them by 1. The plain degree histogram has 4: each endpoint leaves one bin
and enters the next. What it costs next to Gaussian releases is in `pure`.
"""

import math

from vesper.privacy.expect import expect_not_negative, expect_positive

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
