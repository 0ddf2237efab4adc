"""Renyi differential privacy: the Gaussian mechanism, composition and conversion.

    rdp(order) = order / (2 noise_multiplier^2)                    Gaussian mechanism (Mironov 2017)
    rdp of a composition = sum of the rdp                          at each order
    epsilon = rdp - log(delta order) / (order - 1) + log(1 - 1 / order), best order
                                                                   (Balle et al. 2020)

The certified plan does not use it (`gaussian` is exact and needs 3 to 7 % less noise); the paper's
accountant is built on it.

Renyi bound for the Gaussian mechanism on a secret uniform sample (Wang et al. 2019).

Let m be the noise_multiplier, L the likelihood ratio of N(1, m^2) to N(0, m^2), and
B_k = E[(L - 1)^k] under N(0, m^2) for even k. Then, for whole orders n = 2, 3, ...,

    cgf(n) = log(1 + sum over j = 2..n of C(n, j) sampling_rate^j term_j)
    term_2 = min(4 (E L^2 - 1), 2 E L^2)
    term_j = min(4 sqrt(B_{2 floor(j/2)} B_{2 ceil(j/2)}), 2 E L^j)
    E L^j  = e^{j (j - 1) / (2 m^2)}

and rdp(n) = cgf(n) / (n - 1). Between whole orders the cgf is convex and lies below the straight
line. The bound holds for *replace one* and for a sample that is secret. Neither is true of VESPER's
batches, so everything computed from it is only *claimed*.

The binomial sum for B_k, which dp-accounting uses, suffers from cancellation at large m. Here B_k
is a sum of positive numbers over a grid; for an analytic bell of width 1/2 or more and a step of
1/5 that is exact up to rounding.
"""

import functools
import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from vesper.privacy.accounting.safe_numbers import expect, expect_delta, expect_not_negative

Orders = NDArray[np.float64]
"""Renyi orders, each above 1."""

SMALLEST_ORDER = 1.01  # closer to 1 the conversion is useless and unstable


def order_grid(*, largest: float = 1e6, relative_step: float = 0.02) -> Orders:
    """Orders from 1.01 upwards whose distances from 1 grow by `relative_step`.

    Around its best order, epsilon behaves like a/(order - 1) + b (order - 1), so missing the best
    order by half a step costs a relative (relative_step / 2)^2 / 2 = 5e-5 at the default.
    """
    steps = math.ceil(math.log((largest - 1) / (SMALLEST_ORDER - 1)) / math.log1p(relative_step))
    grid: Orders = 1 + np.geomspace(SMALLEST_ORDER - 1, largest - 1, steps + 1)
    return grid


def gaussian_rdp(*, orders: Orders, noise_multiplier: float) -> NDArray[np.float64]:
    """Renyi divergence of the Gaussian mechanism at each order; inf without noise."""
    expect_not_negative("noise_multiplier", noise_multiplier)
    if noise_multiplier == 0:
        return np.full_like(orders, np.inf)
    return orders / (2 * noise_multiplier**2)


def compose(rdps: Iterable[NDArray[np.float64]], *, orders: Orders) -> NDArray[np.float64]:
    """Renyi divergence of several adaptive mechanisms: their sum, 0 for none."""
    return sum(rdps, start=np.zeros_like(orders))


def epsilon_of_rdp(
    *, orders: Orders, rdp: NDArray[np.float64], delta: float
) -> tuple[float, float]:
    """Smallest epsilon over all orders, and the order that gives it (Balle et al. 2020).

    An order whose divergence is so small that delta^2 > 1 - exp(-rdp) gives epsilon 0
    (Bretagnolle and Huber: total variation <= sqrt(1 - exp(-KL)), and KL <= rdp).
    """
    expect_delta(delta)
    expect(
        bool(np.all(orders >= SMALLEST_ORDER)),
        name="orders",
        wanted=f"orders >= {SMALLEST_ORDER}",
        got=float(np.min(orders)),
        remedy="take them from order_grid()",
    )
    epsilons = rdp + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    epsilons[delta**2 + np.expm1(-rdp) > 0] = 0.0
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), float(orders[best])


Floats = NDArray[np.float64]

GRID_STEP = 0.2
GRID_MARGIN = 12.0  # standard deviations beyond the peak of the integrand


def cgf_bound(*, sampling_rate: float, noise_multiplier: float, max_order: int) -> Floats:
    """cgf(0), ..., cgf(max_order), where cgf(0) = cgf(1) = 0; inf without noise."""
    return _cgf(sampling_rate, noise_multiplier, max_order, _log_terms)


def printed_cgf_bound(*, sampling_rate: float, noise_multiplier: float, max_order: int) -> Floats:
    """`cgf_bound` with the terms of the paper's Theorem 1 exactly as printed, for the erratum.

        term_2 = min(4 (e^{eps(2)} - 1), eps(2) min(2, (e^{eps(inf) - 1})^2))
        term_j = e^{(j - 1) eps(j)} min(2, (e^{eps(inf) - 1})^j)

    with eps(j) = j / (2 m^2) and eps(inf) = inf, so that both inner minima are 2. At whole orders
    C(n, j) = 0 beyond n, so the printed infinite sum is finite. term_j tends to 2 and not to 0 as
    the noise grows, so the result has a floor that no amount of noise can lower.
    """
    return _cgf(sampling_rate, noise_multiplier, max_order, _printed_log_terms)


def _cgf(
    sampling_rate: float,
    noise_multiplier: float,
    max_order: int,
    log_terms: Callable[[float, int], Floats],
) -> Floats:
    expect(
        0 <= sampling_rate <= 1,
        name="sampling_rate",
        wanted="0 <= sampling_rate <= 1",
        got=sampling_rate,
        remedy="give a probability",
    )
    expect_not_negative("noise_multiplier", noise_multiplier)
    orders = np.arange(max_order + 1)
    cgf = np.zeros(max_order + 1)
    if sampling_rate == 0:
        return cgf
    if noise_multiplier == 0:
        cgf[2:] = np.inf
        return cgf
    if sampling_rate == 1:  # no sampling: the Gaussian mechanism itself
        return orders * (orders - 1) / (2 * noise_multiplier**2)
    weighted = orders[2:] * math.log(sampling_rate) + log_terms(noise_multiplier, max_order)
    summands = _log_binomials(max_order) + weighted  # (max_order - 1, max_order - 1)
    peak = summands.max(axis=1)  # (max_order - 1,)
    log_sum = peak + np.log(np.exp(summands - peak[:, None]).sum(axis=1))
    cgf[2:] = np.logaddexp(0.0, log_sum)
    return cgf


def _log_terms(noise_multiplier: float, max_order: int) -> Floats:
    """Log term_j for j = 2, ..., max_order."""
    j = np.arange(2, max_order + 1)
    terms: Floats = math.log(2) + j * (j - 1) / (2 * noise_multiplier**2)
    if noise_multiplier > 1:  # otherwise the central moments are never the minimum
        central = _log_central_moments(noise_multiplier, (max_order + 1) // 2)
        terms = np.minimum(terms, math.log(4) + (central[j // 2] + central[(j + 1) // 2]) / 2)
    return terms


def _printed_log_terms(noise_multiplier: float, max_order: int) -> Floats:
    j = np.arange(2, max_order + 1)
    terms: Floats = math.log(2) + j * (j - 1) / (2 * noise_multiplier**2)
    rdp_2 = 1 / noise_multiplier**2
    terms[0] = min(math.log(4 * math.expm1(min(rdp_2, 700.0))), math.log(2 * rdp_2))
    return terms


def _log_central_moments(noise_multiplier: float, count: int) -> Floats:
    """Log B_{2k} for k = 0, ..., count.

    As a function of z = m x the integrand (L - 1)^{2k} phi(z), L = exp(z/m - 1/(2 m^2)), has one
    peak on either side of its zero: at most 2k/m + 2 sqrt(k) above, at most sqrt(2k) below.
    """
    above = 2 * count / noise_multiplier + 2 * math.sqrt(count) + GRID_MARGIN
    below = math.sqrt(2 * count) + GRID_MARGIN
    z = np.arange(-below, above, GRID_STEP)  # (points,)
    log_ratio = z / noise_multiplier - 1 / (2 * noise_multiplier**2)
    # log |e^w - 1| without overflow for large w and without cancellation for small w
    log_distance = np.maximum(log_ratio, 0) + np.log(-np.expm1(-np.abs(log_ratio)))
    log_density = -(z**2) / 2 - 0.5 * math.log(2 * math.pi) + math.log(GRID_STEP)
    k = np.arange(count + 1)[:, None]
    integrand = 2 * k * log_distance + log_density  # (count + 1, points)
    peak = integrand.max(axis=1)
    moments: Floats = peak + np.log(np.exp(integrand - peak[:, None]).sum(axis=1))
    return moments


@functools.lru_cache(maxsize=8)
def _log_binomials(max_order: int) -> Floats:
    """Log C(n, j) for n, j = 2, ..., max_order; -inf where j > n."""
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, max_order + 1)))))
    n = np.arange(2, max_order + 1)
    table = np.full((len(n), len(n)), -np.inf)
    for row, order in enumerate(n):
        j = n[: row + 1]
        table[row, : row + 1] = log_factorial[order] - log_factorial[j] - log_factorial[order - j]
    table.setflags(write=False)
    return table
