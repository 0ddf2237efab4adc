"""Private degree histogram.

    counts[k] = #{v : degree(v) >= k} + K_k,   k = 1 .. LAST      K_k discrete Laplace, epsilon / 2
    isotonic regression makes the counts non-increasing; their differences are the histogram,
    with bins 0 .. LAST - 1 and >= LAST

One edge {a, b} takes degree(a) past one threshold and degree(b) past one: L1 sensitivity 2. The
plain histogram has sensitivity 4, because each endpoint leaves one bin and enters the next. The
paper prints 2 for it, so a nominal epsilon costs twice that (`as_paper`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.receipt import Receipt, encode

LAST_BIN = 50
"""Degrees of at least this value share the last bin."""

CUMULATIVE_SENSITIVITY = 2
PLAIN_SENSITIVITY = 4
PAPER_SENSITIVITY = 2

SMALLEST_EPSILON, LARGEST_EPSILON = 0.001, 100.0
"""Beyond these, noise cannot be drawn or vanishes; refused before anything is charged."""


@dataclass(frozen=True)
class DegreeHistogram:
    """Released histogram: `counts[k]` nodes of degree k; the last bin also holds all above."""

    counts: tuple[float, ...]
    epsilon: float

    @property
    def mean_degree_at_least(self) -> float:
        """Mean degree with degrees cut off at LAST: a lower bound, up to noise."""
        total = max(sum(self.counts), 1.0)
        return sum(k * count for k, count in enumerate(self.counts)) / total

    @property
    def isolated_share(self) -> float:
        """Share of nodes without a neighbour."""
        return self.counts[0] / max(sum(self.counts), 1.0)


def cost_of(epsilon: float, *, as_paper: bool = False) -> PureRelease:
    """Return the event to charge: what is really spent."""
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"Expected an epsilon between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}, "
            f"got {epsilon:g}; nothing was charged."
        )
    if as_paper:
        spent = epsilon * PLAIN_SENSITIVITY / PAPER_SENSITIVITY
        return PureRelease(epsilon=spent, what=f"{DEGREES}, scale of the paper")
    return PureRelease(epsilon=epsilon, what=DEGREES)


def release_histogram(
    graph: Graph,
    *,
    event: PureRelease,
    receipt: Receipt,
    account: str,
    noise: NoiseSource,
    as_paper: bool = False,
) -> DegreeHistogram:
    """Release the histogram at the epsilon of `event`, charged to the account of that name."""
    receipt.spend(event=event, receivers=encode(None, graph.num_nodes), graph=account)
    degrees = np.minimum(np.diff(graph.indptr), LAST_BIN)  # (num_nodes,)
    plain = np.bincount(degrees, minlength=LAST_BIN + 1).astype(np.int32)  # (LAST + 1,)
    if as_paper:
        noise.add_laplace_to(plain, epsilon=event.epsilon / PLAIN_SENSITIVITY)
        counts = plain.astype(np.float64)
    else:
        cumulative = np.cumsum(plain[::-1])[::-1][1:].astype(np.int32)  # (LAST,) degree >= 1 ..
        noise.add_laplace_to(cumulative, epsilon=event.epsilon / CUMULATIVE_SENSITIVITY)
        falling = fit_non_increasing(cumulative.astype(np.float64)).clip(0, graph.num_nodes)
        edges = np.concatenate([[graph.num_nodes], falling, [0.0]])  # (LAST + 2,)
        counts = edges[:-1] - edges[1:]  # (LAST + 1,)
    return DegreeHistogram(counts=tuple(counts.tolist()), epsilon=event.epsilon)


def fit_non_increasing(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least-squares non-increasing fit, by pooling adjacent violators.

    >>> fit_non_increasing(np.array([5.0, 1.0, 3.0, 0.0])).tolist()
    [5.0, 2.0, 2.0, 0.0]
    """
    blocks: list[tuple[float, int]] = []  # (mean, length), means falling
    for value in values:
        mean, length = float(value), 1
        while blocks and blocks[-1][0] < mean:
            before, count = blocks.pop()
            mean = (before * count + mean * length) / (count + length)
            length += count
        blocks.append((mean, length))
    means, lengths = zip(*blocks, strict=True)
    return np.repeat(np.array(means), lengths)
