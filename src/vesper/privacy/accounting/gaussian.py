"""Exact conversion between Gaussian differential privacy and (epsilon, delta).

    delta(epsilon) = Phi(-x) - e^epsilon Phi(-y),   x = epsilon/mu - mu/2,   y = epsilon/mu + mu/2

(Balle and Wang 2018; Dong, Roth and Su 2022.) Both terms underflow in the tails and cancel for
small mu. Because phi(x) = e^epsilon phi(y), the same number is

    delta(epsilon) = phi(x) (I_0(x) - I_0(y))                        I_n as in `mills`
                   = 2 phi(x) sum over odd n of (mu/2)^n / n! I_n(epsilon / mu)

The second line has only positive terms and is used up to mu = 1. Above that the first line is used,
which loses at most a factor x + 4 to cancellation.

Rounding is conservative: `delta_of` and `epsilon_of` round up, `mu_of` rounds down.

Mills' ratio I_0 and its moments give the normal tail without underflow:

    I_n(t) = integral over s > 0 of s^n exp(-t s - s^2 / 2)

    I_0(t) = Phi(-t) / phi(t)        Mills' ratio
    I_1(t) = 1 - t I_0(t)            minus its derivative
    I_{n+1}(t) = n I_{n-1}(t) - t I_n(t)

Every I_n is positive, so their sums do not cancel. In terms of the ratios r_n = I_n / I_{n-1} the
last line is the continued fraction r_n = n / (t + r_{n+1}), which is stable when evaluated from its
far end. Starting values 0 and infinity enclose the true value; with the number of steps taken here
the two agree to 1e-17. Below `SWITCH` the recurrence runs forwards from `math.erfc`, where it loses
fewer than two digits.
"""

import math

from vesper.privacy.accounting.safe_numbers import (
    bracket,
    expect,
    expect_delta,
    expect_not_negative,
    safe_side,
)

SWITCH = 1.5
LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)


def mills(t: float) -> float:
    """I_0(t) = Phi(-t) / phi(t) for t >= -1, to within 64 units of 2^-53.

    >>> round(mills(0.0), 12) == round(math.sqrt(math.pi / 2), 12)
    True
    """
    if t < SWITCH:
        return math.sqrt(math.pi / 2) * math.exp(t * t / 2) * math.erfc(t / math.sqrt(2))
    return 1 / (t + _ratios(t, 1)[0])


def moments(t: float, count: int) -> list[float]:
    """I_0(t), ..., I_count(t) for t >= 0."""
    values = [mills(t)]
    if t < SWITCH:
        values.append(1 - t * values[0])
        for n in range(1, count):
            values.append(n * values[n - 1] - t * values[n])
    else:
        for ratio in _ratios(t, count):
            values.append(values[-1] * ratio)
    return values


def log_tail(t: float) -> float:
    """Log of Phi(-t) for t >= -1, without underflow for large t."""
    return -t * t / 2 - LOG_SQRT_TWO_PI + math.log(mills(t))


def _ratios(t: float, count: int) -> list[float]:
    """r_1(t), ..., r_count(t) for t >= SWITCH, by the continued fraction from its far end.

    One step shrinks an error by r_n^2 / n <= exp(-2 asinh(t / (2 sqrt n))), so n steps shrink it
    by about exp(-2 t sqrt n): (21 / t)^2 steps are more than enough for 2^-53.
    """
    depth = count + 24 + int((21 / t) ** 2)
    ratio = (math.sqrt(t * t + 4 * depth) - t) / 2 if t < 1e3 else depth / t
    ratios = [ratio] * depth
    for n in range(depth, 0, -1):
        ratio = n / (t + ratio)
        ratios[n - 1] = ratio
    return ratios[:count]


SMALL_MU = 1.0
ODD_TERMS = 11  # the twelfth is below 1e-17 of the sum at mu = 1
TINY_MU, HUGE = 1e-100, 1e8
LOWEST_LOG_DELTA = -1e12  # reached within these bounds, so every search terminates


def log_delta_of(*, mu: float, epsilon: float) -> float:
    """Log of the smallest delta for which mu-GDP implies (epsilon, delta), rounded up.

    Claim: G-CONVERT. A mechanism is mu-GDP if and only if it is (epsilon, delta(epsilon)) for all
        epsilon >= 0. The returned number is at least log delta(epsilon) and exceeds it by less
        than 2 * margin, margin = 2^-43 + 2^-48 (|x| + 4) (epsilon/mu + mu + 4).
    Relation: any; it is the relation for which mu was proved.
    Assumes: `math.exp`, `log`, `log1p` and `erfc` are off by less than 8 units in the last place.
    Moves: nothing; a conversion.
    Tight: exact for the Gaussian mechanism; 2e-11 relative on delta for delta >= 1e-300.
    Proof: docs/claims/G-CONVERT.md.

    Edge cases: mu = 0 gives -inf; mu above 1e8 gives 0 (delta = 1); mu below 1e-100 is treated
    as 1e-100 and epsilon/mu above 1e8 as 1e8, both of which only raise delta.

    Raises:
        InputError: mu or epsilon is negative or not a number.
    """
    expect_not_negative("mu", mu)
    expect_not_negative("epsilon", epsilon)
    if mu == 0:
        return -math.inf
    if mu > HUGE:
        return 0.0
    mu = max(mu, TINY_MU)
    center = min(epsilon / mu, HUGE)
    x, y = center - mu / 2, center + mu / 2
    if x <= -1:  # then mu >= 2, delta > 0.68 and nothing cancels
        density = math.exp(-x * x / 2 - LOG_SQRT_TWO_PI)
        value = math.log1p(-(math.erfc(-x / math.sqrt(2)) / 2 + density * mills(y)))
    else:
        gap = _gap_series(center, mu / 2) if mu <= SMALL_MU else mills(x) - mills(y)
        value = -x * x / 2 - LOG_SQRT_TWO_PI + math.log(gap)
    margin = 2.0**-43 + 2.0**-48 * (abs(x) + 4) * (center + mu + 4)
    return min(0.0, value + margin)


def delta_of(*, mu: float, epsilon: float) -> float:
    """Smallest delta for which mu-GDP implies (epsilon, delta), rounded up (claim G-CONVERT).

    >>> round(delta_of(mu=1.0, epsilon=1.0), 9)
    0.126936738
    """
    log_delta = log_delta_of(mu=mu, epsilon=epsilon)
    if log_delta == -math.inf:
        return 0.0
    # math.exp is accurate to a few units in the last place, and must not underflow to 0.
    return min(1.0, math.nextafter(math.exp(log_delta) * (1 + 2.0**-49), math.inf))


def epsilon_of(*, mu: float, delta: float) -> float:
    """Smallest epsilon for which mu-GDP implies (epsilon, delta), rounded up (claim G-CONVERT).

    >>> round(epsilon_of(mu=1.0, delta=1e-6), 9)
    4.886554117
    """
    expect_delta(delta)
    return epsilon_at(mu=mu, log_delta=_log_rounded_down(delta))


def epsilon_at(*, mu: float, log_delta: float) -> float:
    """`epsilon_of` for a delta given by its log, which may be too small for a float."""
    expect_not_negative("mu", mu)
    _expect_log_delta(log_delta)
    if mu > HUGE:
        return math.inf

    def holds(epsilon: float) -> bool:
        return log_delta_of(mu=mu, epsilon=epsilon) <= log_delta

    if holds(0.0):
        return 0.0
    # delta(epsilon) <= exp(-x^2 / 2) for x >= 0, so the root lies at or just above this point.
    start = mu * math.sqrt(-2 * log_delta) + mu * mu / 2
    safe, _ = bracket(holds, start=start, factor=2.0)
    return safe_side(holds, safe=safe, unsafe=0.0)


def mu_of(*, epsilon: float, delta: float) -> float:
    """Largest mu for which mu-GDP implies (epsilon, delta), rounded down (claim G-CONVERT).

    An infinite epsilon gives an infinite mu.

    >>> round(mu_of(epsilon=1.0, delta=1e-6), 9)
    0.236704381
    """
    expect_delta(delta)
    return mu_at(epsilon=epsilon, log_delta=_log_rounded_down(delta))


def mu_at(*, epsilon: float, log_delta: float) -> float:
    """`mu_of` for a delta given by its log, which may be too small for a float."""
    expect_not_negative("epsilon", epsilon)
    _expect_log_delta(log_delta)
    if math.isinf(epsilon):
        return math.inf

    def holds(mu: float) -> bool:
        return log_delta_of(mu=mu, epsilon=epsilon) <= log_delta

    if not holds(TINY_MU):
        return 0.0
    safe, unsafe = bracket(holds, start=1.0, factor=0.5)
    return safe_side(holds, safe=safe, unsafe=unsafe)


def _gap_series(center: float, half: float) -> float:
    """I_0(center - half) - I_0(center + half) for half <= 1/2, as a sum of positive terms."""
    integrals = moments(center, 2 * ODD_TERMS - 1)  # (2 * ODD_TERMS,)
    total = 0.0
    for n in range(2 * ODD_TERMS - 1, 0, -2):  # smallest term first
        total += half**n / math.factorial(n) * integrals[n]
    return 2 * total


def _log_rounded_down(delta: float) -> float:
    return math.log(delta) * (1 + 2.0**-49) - 2.0**-52


def _expect_log_delta(log_delta: float) -> None:
    expect(
        LOWEST_LOG_DELTA <= log_delta < 0,
        name="log_delta",
        wanted=f"{LOWEST_LOG_DELTA:.0e} <= log_delta < 0",
        got=log_delta,
        remedy="give the natural log of a delta in (0, 1)",
    )
