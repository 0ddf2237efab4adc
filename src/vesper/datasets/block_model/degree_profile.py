"""Degrees that follow a published histogram with an open last bin.

A histogram counts the nodes of degree 0, 1, ..., k - 1 and, in its last bin, of degree >= k. Inside
the open bin, degrees follow a lognormal truncated to [k, max_degree],

    P(degree = j) ~ exp(-(ln j - location)^2 / (2 tail_log_std^2)) / j,

whose `location` is solved for the mean degree. Degrees are quantiles, not draws: every bin matches
the histogram to within one node, and only the assignment of degrees to nodes is random.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST_MEAN_SHARE = 0.01
"""The mean degree is at most this share of the nodes, so that small graphs stay sparse."""

LARGEST_DEGREE_SHARE = 0.1
"""No degree exceeds this share of the nodes."""

SMALLEST_TAIL_MEAN = 1.1
"""Least mean of the open bin, in units of its lower end; below it all degrees are scaled."""


@dataclass(frozen=True, kw_only=True)
class DegreeProfile:
    """A degree histogram, and the distribution inside its open bin."""

    histogram: tuple[int, ...]
    """Nodes of degree 0, 1, ..., and at least `len(histogram) - 1`; only shares matter."""
    mean_degree: float
    max_degree: int
    tail_log_std: float
    """Standard deviation of ln(degree) inside the open bin."""

    def mean_for(self, num_nodes: int) -> float:
        """Return the mean degree for `num_nodes` nodes: the profile's, capped for small graphs."""
        return min(self.mean_degree, LARGEST_MEAN_SHARE * num_nodes)

    def num_edges(self, num_nodes: int) -> int:
        """Return the number of undirected edges for `num_nodes` nodes."""
        return round(self.mean_for(num_nodes) * num_nodes / 2)

    def draw(self, num_nodes: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a degree for every node; they sum to exactly `2 * num_edges(num_nodes)`.

        In small graphs the mean is capped at 1 % and the largest degree at 10 % of the nodes. The
        open bin shrinks first, and the closed bins keep their shares. If that is not enough (the
        mean of the open bin would fall below 1.1 times its lower end), all degrees are scaled down
        by one factor.
        """
        shares = np.array(self.histogram) / sum(self.histogram)  # (bins,)
        first_open = len(shares) - 1
        largest = max(1, min(self.max_degree, int(LARGEST_DEGREE_SHARE * num_nodes)))
        closed_mean = float(shares[:-1] @ np.arange(first_open))
        wanted_mean = (self.mean_for(num_nodes) - closed_mean) / float(shares[-1])
        tail_mean = max(wanted_mean, SMALLEST_TAIL_MEAN * first_open)
        tail = self._tail(first_open, max(largest, 4 * first_open), tail_mean)
        probabilities = np.concatenate([shares[:-1], shares[-1] * tail])  # (degrees,)
        quantiles = (np.arange(num_nodes) + 0.5) / num_nodes  # (num_nodes,)
        degrees = np.searchsorted(np.cumsum(probabilities), quantiles).astype(np.int64)
        degrees = np.minimum(degrees, len(probabilities) - 1)  # cumsum may end just below 1
        rng.shuffle(degrees)
        total = 2 * self.num_edges(num_nodes)
        if tail_mean > wanted_mean:
            scaled = degrees * (total / degrees.sum())
            degrees = np.floor(scaled + rng.random(num_nodes)).astype(np.int64)
        degrees = np.minimum(degrees, largest)
        return _with_sum(degrees, total, first_open=first_open, largest=largest, rng=rng)

    def _tail(self, first: int, last: int, mean: float) -> NDArray[np.float64]:
        """Return probabilities of `first..last` with mean `mean`, by bisection on the location."""
        logs = np.log(np.arange(first, last + 1))
        low, high = -1e3, 1e3  # far beyond any ln(degree): the mean runs from `first` to `last`
        weights = np.ones(len(logs))
        for _ in range(200):
            location = (low + high) / 2
            exponents = -((logs - location) ** 2) / (2 * self.tail_log_std**2) - logs
            weights = np.exp(exponents - exponents.max())
            weights /= weights.sum()
            if weights @ np.arange(first, last + 1) < mean:
                low = location
            else:
                high = location
        return weights


def _with_sum(
    degrees: NDArray[np.int64],
    total: int,
    *,
    first_open: int,
    largest: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Change random degrees by 1 until they sum to `total`, in the open bin if possible."""
    while (missing := total - int(degrees.sum())) != 0:
        step = 1 if missing > 0 else -1
        movable = (degrees + step >= 1) & (degrees + step <= largest)
        in_open_bin = movable & (degrees > first_open)
        candidates = np.flatnonzero(in_open_bin if in_open_bin.any() else movable)
        chosen = rng.permutation(candidates)[: abs(missing)]
        degrees[chosen] += step
    return degrees
