"""Who sends money to whom in one window: planted fraud patterns in an ordinary payment graph.

The first nodes are risky, in the order ring members, chain members, users of a shared counterparty,
loners; the others are ordinary. Every node gets a degree such that the whole follows the paper's
private histogram; what the patterns do not use is paired at random (configuration model).

    ring      risky users on a circle, each linked to the next 1, 2 or 3
    chain     mules in a row, each passes money on to the next
    shared    one to three collectors, each linked to every user of the group
    loner     risky, but with the edges of an ordinary user

Members of a pattern also have ordinary edges, to look ordinary.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Nodes of degree 0, 1, ..., 49 and of 50 or more: the paper's private histogram of its Finance set.
DEGREE_COUNTS = (
    457_384, 214_303, 154_602, 87_144, 59_760, 39_523, 28_142, 20_178, 15_280, 11_277,
    8_697, 6_856, 5_155, 4_307, 3_311, 2_714, 2_228, 1_828, 1_488, 1_179,
    1_023, 851, 724, 587, 511, 435, 395, 344, 311, 214,
    216, 198, 190, 154, 128, 123, 108, 94, 89, 83,
    72, 57, 68, 64, 52, 41, 27, 46, 37, 34, 385,
)  # fmt: skip
_TAIL_MEAN = 8.0  # degrees above 50 are 50 + exponential; few, so their mean matters little

RING_SHARE, CHAIN_SHARE, SHARED_SHARE = 0.35, 0.15, 0.15
RING_SIZES, CHAIN_SIZES, SHARED_SIZES = (5, 12), (4, 9), (6, 16)
ORDINARY_EDGES = 1.2  # mean number of ordinary edges of a member of a pattern


def degree_sequence(num_nodes: int) -> Ints:
    """Degrees of `num_nodes` nodes at the quantiles of the histogram, ascending."""
    shares = np.cumsum(DEGREE_COUNTS) / sum(DEGREE_COUNTS)
    quantiles = (np.arange(num_nodes) + 0.5) / num_nodes
    degrees = np.searchsorted(shares, quantiles)  # (num_nodes,)
    tail = degrees >= len(DEGREE_COUNTS) - 1
    inside = (quantiles[tail] - shares[-2]) / (1 - shares[-2])  # quantile within the open bin
    degrees[tail] += (-_TAIL_MEAN * np.log1p(-inside)).astype(np.int64)
    return np.minimum(degrees, num_nodes // 4).astype(np.int64)


def draw_edges(
    num_nodes: int, *, num_edges: int, num_risky: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw `num_edges` distinct pairs u < v, of which nodes 0 .. num_risky - 1 are the risky ones."""
    ring, chain, shared = (
        int(share * num_risky) for share in (RING_SHARE, CHAIN_SHARE, SHARED_SHARE)
    )
    low, high = (
        np.concatenate(ends)
        for ends in zip(
            _rings(ring, rng),
            _shifted(_chains(chain, rng), ring),
            _shifted(_shared(shared, rng), ring + chain),
            strict=True,
        )
    )
    keys = np.unique(np.minimum(low, high) * num_nodes + np.maximum(low, high))
    members = ring + chain + shared
    planted = np.bincount(np.concatenate(np.divmod(keys, num_nodes)), minlength=num_nodes)
    ordinary = np.zeros(num_nodes, dtype=np.int64)
    ordinary[:members] = rng.geometric(1 / (1 + ORDINARY_EDGES), members) - 1
    used = (planted + ordinary)[:members]
    stubs_left = 2 * (num_edges - len(keys)) - int(ordinary.sum())
    ordinary[members:] = _rest(num_nodes, used, stubs_left, rng)
    stubs = np.repeat(np.arange(num_nodes), ordinary)
    rng.shuffle(stubs)
    pairs = stubs[: len(stubs) // 2 * 2].reshape(2, -1)
    while len(keys) < num_edges:
        low, high = pairs.min(axis=0), pairs.max(axis=0)
        fresh = np.setdiff1d((low * num_nodes + high)[low < high], keys)
        kept = rng.permutation(fresh)[: num_edges - len(keys)]
        keys = np.union1d(keys, kept)
        pairs = rng.choice(stubs, (2, num_edges - len(keys)))  # for self-loops and repeats
    u, v = np.divmod(keys, num_nodes)
    return u, v


def _rest(num_nodes: int, used: Ints, total: int, rng: np.random.Generator) -> Ints:
    """Degrees of all nodes outside patterns: what `used` leaves of the histogram, summing to total."""
    wanted = np.bincount(degree_sequence(num_nodes))
    taken = np.bincount(used, minlength=len(wanted))[: len(wanted)]
    left = np.repeat(np.arange(len(wanted)), np.maximum(wanted - taken, 0))  # ascending
    size = num_nodes - len(used)
    places = ((np.arange(size) + 0.5) * len(left) / size).astype(np.int64)
    degrees = rng.permutation(left[places])
    while missing := total - int(degrees.sum()):
        candidates = np.flatnonzero(degrees > (0 if missing > 0 else 1))
        chosen = rng.permutation(candidates)[: abs(missing)]
        degrees[chosen] += np.sign(missing)
    return degrees


@dataclass(frozen=True)
class _Groups:
    """Consecutive members cut into groups: for each member, where its group starts and its size."""

    member: Ints
    start: Ints
    size: Ints
    number: Ints


def _cut(total: int, sizes: tuple[int, int], rng: np.random.Generator) -> _Groups:
    drawn = rng.integers(sizes[0], sizes[1] + 1, size=total // sizes[0] + 1)
    ends = np.minimum(np.cumsum(drawn), total)
    drawn = np.diff(ends, prepend=0)
    drawn = drawn[drawn > 0]
    number = np.repeat(np.arange(len(drawn)), drawn)
    start = np.repeat(np.cumsum(drawn) - drawn, drawn)
    return _Groups(np.arange(total), start, drawn[number], number)


def _rings(total: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    groups = _cut(total, RING_SIZES, rng)
    reach = rng.integers(1, 4, size=total + 1)[groups.number]
    low, high = [], []
    for step in (1, 2, 3):
        linked = (reach >= step) & (2 * step < groups.size)
        place = groups.member - groups.start
        other = groups.start + (place + step) % groups.size
        low.append(groups.member[linked])
        high.append(other[linked])
    return np.concatenate(low), np.concatenate(high)


def _chains(total: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    groups = _cut(total, CHAIN_SIZES, rng)
    linked = groups.member - groups.start < groups.size - 1
    return groups.member[linked], groups.member[linked] + 1


def _shared(total: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    groups = _cut(total, SHARED_SIZES, rng)
    collectors = np.minimum(rng.integers(1, 4, size=total + 1)[groups.number], groups.size // 2)
    place = groups.member - groups.start
    low, high = [], []
    for k in range(3):
        linked = (k < collectors) & (place >= collectors)
        low.append(groups.start[linked] + k)
        high.append(groups.member[linked])
    return np.concatenate(low), np.concatenate(high)


def _shifted(pairs: tuple[Ints, Ints], by: int) -> tuple[Ints, Ints]:
    return pairs[0] + by, pairs[1] + by
