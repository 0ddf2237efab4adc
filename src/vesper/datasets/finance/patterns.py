"""Fraud patterns in the payment graph: rings, mule chains, shared counterparties.

    ring      an organiser linked to all; members on a circle, each linked to the next 2 or 3
    chain     mules in a row, each passes money on to the next
    shared    one to three collectors, each linked to every user of the group
    loner     no pattern: a stolen or invented account that works alone

Risky users are numbered 0, 1, ..., in this order: ring, chain, shared, loner.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RING_SHARE, CHAIN_SHARE, SHARED_SHARE = 0.28, 0.05, 0.10
"""Shares of the risky users; the other 57 % are loners."""

RING_SIZES, CHAIN_SIZES, SHARED_SIZES = (8, 16), (4, 9), (6, 18)
"""Smallest and largest group, including organiser or collectors."""

Ints = NDArray[np.int64]
Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class Patterns:
    """Patterns planted among the risky users.

    Args:
        num_members: Users 0 .. num_members - 1 are in a pattern, the remaining ones are loners.
        organisers: (num_organisers,) ring organisers and collectors.
        pairs: (num_pairs, 2) linked users, each pair once.
    """

    num_members: int
    organisers: Ints
    pairs: Pairs


def plant_patterns(num_risky: int, rng: np.random.Generator) -> Patterns:
    """Divide the risky users into groups and link them."""
    members, organisers, pairs = 0, [], []
    for share, sizes, link in (
        (RING_SHARE, RING_SIZES, _link_ring),
        (CHAIN_SHARE, CHAIN_SIZES, _link_chain),
        (SHARED_SHARE, SHARED_SIZES, _link_shared),
    ):
        groups = _cut(int(share * num_risky), sizes, rng)
        group_organisers, group_pairs = link(groups, rng)
        organisers.append(group_organisers + members)
        pairs.append(group_pairs + members)
        members += len(groups.place)
    return Patterns(
        num_members=members, organisers=np.concatenate(organisers), pairs=np.concatenate(pairs)
    )


@dataclass(frozen=True)
class _Groups:
    """Users 0 .. n - 1 cut into consecutive groups; all arrays (n,)."""

    number: Ints
    """Group of each user."""
    start: Ints
    """First user of that group."""
    place: Ints
    """0 for the first user of a group, 1 for the next, ..."""
    size: Ints


def _cut(total: int, sizes: tuple[int, int], rng: np.random.Generator) -> _Groups:
    sizes_drawn = rng.integers(sizes[0], sizes[1] + 1, size=total // sizes[0] + 1)
    size = np.diff(np.minimum(np.cumsum(sizes_drawn), total), prepend=0)  # the last may be smaller
    size = size[size > 0]
    number = np.repeat(np.arange(len(size)), size)
    start = (np.cumsum(size) - size)[number]
    return _Groups(number=number, start=start, place=np.arange(total) - start, size=size[number])


def _link_ring(groups: _Groups, rng: np.random.Generator) -> tuple[Ints, Pairs]:
    user = np.arange(len(groups.place))
    reach = rng.integers(2, 4, size=len(user) + 1)[groups.number]
    inner = groups.place > 0
    circle = groups.size - 1  # the organiser is not on the circle
    pairs = [np.stack([groups.start[inner], user[inner]], axis=1)]
    for step in (1, 2, 3):
        # 2 * step < circle keeps each pair from being reached from both sides.
        linked = inner & (reach >= step) & (2 * step < circle)
        place = (groups.place[linked] - 1 + step) % circle[linked] + 1
        pairs.append(np.stack([user[linked], groups.start[linked] + place], axis=1))
    return user[~inner], np.concatenate(pairs)


def _link_chain(groups: _Groups, rng: np.random.Generator) -> tuple[Ints, Pairs]:
    user = np.arange(len(groups.place))
    passing = user[groups.place < groups.size - 1]
    return user[:0], np.stack([passing, passing + 1], axis=1)


def _link_shared(groups: _Groups, rng: np.random.Generator) -> tuple[Ints, Pairs]:
    user = np.arange(len(groups.place))
    drawn = rng.integers(1, 4, size=len(user) + 1)[groups.number]
    collectors = np.minimum(drawn, groups.size // 2)
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for k in range(3):
        linked = (groups.place >= collectors) & (k < collectors)
        pairs.append(np.stack([groups.start[linked] + k, user[linked]], axis=1))
    return user[groups.place < collectors], np.concatenate(pairs)
