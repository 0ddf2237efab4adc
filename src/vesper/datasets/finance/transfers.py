"""Payment graph of one window: fraud patterns inside an ordinary graph.

Every node gets a degree so that all degrees together follow the paper's private histogram. Members
of a pattern have its degree plus a few ordinary edges; all others share the rest of the histogram,
and loners are more often without any edge. Ordinary edges pair nodes at random (configuration
model).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.datasets.finance.patterns import plant_patterns

DEGREE_COUNTS = (
    457_384, 214_303, 154_602, 87_144, 59_760, 39_523, 28_142, 20_178, 15_280, 11_277,
    8_697, 6_856, 5_155, 4_307, 3_311, 2_714, 2_228, 1_828, 1_488, 1_179,
    1_023, 851, 724, 587, 511, 435, 395, 344, 311, 214,
    216, 198, 190, 154, 128, 123, 108, 94, 89, 83,
    72, 57, 68, 64, 52, 41, 27, 46, 37, 34, 385,
)  # fmt: skip
"""Nodes of degree 0, 1, ..., 49 and of 50 or more in the paper's private histogram of Finance."""

TAIL_MEAN = 8.0
"""Mean excess over 50 of larger degrees, exponential; the published mean allows no more."""

MEMBER_ORDINARY_EDGES = 1.0
"""Mean number of ordinary edges of a member of a pattern."""

LONERS_ISOLATED = 0.55
"""Share of loners without any edge."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PaymentGraph:
    """Graph of one window; nodes 0 .. num_risky - 1 are the risky ones.

    Args:
        low: (num_edges,) smaller node of each edge.
        high: (num_edges,) larger node of each edge.
        organisers: (num_organisers,) nodes at the centre of a ring or a shared counterparty.
    """

    low: Ints
    high: Ints
    organisers: Ints


def draw_graph(
    num_nodes: int, *, num_edges: int, num_risky: int, rng: np.random.Generator
) -> PaymentGraph:
    """Draw a graph with exactly `num_edges` distinct edges and no self-loops."""
    patterns = plant_patterns(num_risky, rng)
    members = patterns.num_members
    low, high = patterns.pairs.min(axis=1), patterns.pairs.max(axis=1)
    planted = np.bincount(patterns.pairs.ravel(), minlength=num_nodes)[:members]
    camouflage = rng.geometric(1 / (1 + MEMBER_ORDINARY_EDGES), members) - 1
    ordinary = np.concatenate(
        [
            camouflage,
            _degrees_of_others(
                num_nodes,
                taken=planted + camouflage,
                total=2 * (num_edges - len(low)) - int(camouflage.sum()),
                num_loners=num_risky - members,
                rng=rng,
            ),
        ]
    )  # (num_nodes,)
    keys = _pair(low * num_nodes + high, ordinary, num_edges, rng)
    low, high = np.divmod(keys, num_nodes)
    return PaymentGraph(low=low, high=high, organisers=patterns.organisers)


def degree_sequence(num_nodes: int) -> Ints:
    """Return degrees at the histogram's quantiles, ascending, capped at num_nodes // 4."""
    shares = np.cumsum(DEGREE_COUNTS) / sum(DEGREE_COUNTS)
    quantile = (np.arange(num_nodes) + 0.5) / num_nodes
    degrees = np.searchsorted(shares, quantile).astype(np.int64)
    is_open = degrees == len(DEGREE_COUNTS) - 1
    inside = (quantile[is_open] - shares[-2]) / (1 - shares[-2])  # quantile within the open bin
    degrees[is_open] += (-TAIL_MEAN * np.log1p(-inside)).astype(np.int64)
    return np.minimum(degrees, num_nodes // 4)


def _degrees_of_others(
    num_nodes: int, *, taken: Ints, total: int, num_loners: int, rng: np.random.Generator
) -> Ints:
    """Draw degrees of loners, then of ordinary nodes, from what `taken` leaves of the histogram."""
    wanted = np.bincount(degree_sequence(num_nodes))
    used = np.bincount(taken, minlength=len(wanted))[: len(wanted)]
    left = np.repeat(np.arange(len(wanted)), np.maximum(wanted - used, 0))  # ascending
    size = num_nodes - len(taken)
    degrees = left[np.arange(size) * len(left) // size]
    rng.shuffle(degrees)
    while missing := total - int(degrees.sum()):
        movable = np.flatnonzero(degrees > (0 if missing > 0 else 1))
        degrees[rng.permutation(movable)[: abs(missing)]] += np.sign(missing)
    # Chance isolates too few loners: some swap degrees with isolated ordinary nodes.
    has_edges = np.flatnonzero(degrees[:num_loners])
    isolated = round(LONERS_ISOLATED * num_loners) - (num_loners - len(has_edges))
    giving = has_edges[: max(isolated, 0)]
    receiving = num_loners + np.flatnonzero(degrees[num_loners:] == 0)[: len(giving)]
    giving = giving[: len(receiving)]
    degrees[receiving], degrees[giving] = degrees[giving], 0
    return degrees


def _pair(keys: Ints, degrees: Ints, num_edges: int, rng: np.random.Generator) -> Ints:
    """Add ordinary edges to `keys` (low * num_nodes + high) until there are `num_edges`."""
    num_nodes = len(degrees)
    stubs = np.repeat(np.arange(num_nodes), degrees)
    rng.shuffle(stubs)
    pairs = stubs[: len(stubs) // 2 * 2].reshape(2, -1)
    while (missing := num_edges - len(keys)) > 0:
        low, high = pairs.min(axis=0), pairs.max(axis=0)
        fresh = np.setdiff1d((low * num_nodes + high)[low < high], keys)
        keys = np.union1d(keys, rng.permutation(fresh)[:missing])
        # Self-loops and repeats were dropped: draw as many pairs again, of nodes with edges.
        pairs = rng.choice(stubs, (2, max(num_edges - len(keys), 0)))
    return keys
