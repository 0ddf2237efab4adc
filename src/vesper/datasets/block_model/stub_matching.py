"""A simple graph from degrees split over pools: the configuration model with class structure.

Node v has `d_v` stubs (half edges). Each stub lies in one pool: that of a class, or the open one.
The stubs of one pool are paired uniformly at random. A pair that would be a self-loop or a repeat
is undone, and its stubs are paired again: first in their pool, then in the open pool. Remaining
collisions are resolved by swaps: a stub pair (a, b) and a random edge {c, d} become {a, c} and
{b, d}. So every node keeps exactly its degree, all pairs are distinct, and apart from sorting the
work is linear in the edges.

A pair {u, v} with u < v is one integer, its key `u * num_nodes + v`. NumPy's sorts and shuffles run
on one thread, so a seed gives the same graph on any number of cores.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vesper.progress import Progress, no_progress

Keys = NDArray[np.int64]
Stubs = NDArray[np.int32]

ROUNDS_IN_POOL = 4
"""Attempts to pair the stubs of a pool before the rest moves to the next step."""

ROUNDS_OF_SWAPS = 1000
"""Far more than any graph needs unless it is almost complete; ten is typical."""


def match(
    class_pools: Iterable[Stubs],
    open_stubs: Stubs,
    *,
    num_nodes: int,
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> Keys:
    """Pair all stubs, an even number, into distinct pairs; return their keys, sorted.

    The number of edges is not known before the end, so progress reports have no total.

    Args:
        class_pools: The stubs of one pool at a time: node ids, repeated once per stub.
        open_stubs: The stubs of the open pool.
        num_nodes: Number of nodes; ids are below it.
        rng: Random generator of the pairing.
        progress: receives progress reports.

    Raises:
        ValueError: No simple graph with these degrees was found.
    """
    parts: list[Keys] = []
    waiting = [open_stubs]
    placed = 0
    for stubs in class_pools:
        keys, left = _pair_up(stubs, np.empty(0, np.int64), num_nodes, rng)
        parts.append(keys)
        waiting.append(left)
        placed += len(keys)
        progress("edges", placed, 0)
    taken, repeated = _distinct(np.concatenate([np.empty(0, np.int64), *parts]))
    parts.clear()
    left = np.concatenate([*waiting, _ends(repeated, num_nodes)])
    waiting.clear()
    taken, left = _pair_up(left, taken, num_nodes, rng)
    progress("edges", len(taken), 0)
    return _swap_in(left, taken, num_nodes, rng)


def _pair_up(
    stubs: Stubs, taken: Keys, num_nodes: int, rng: np.random.Generator
) -> tuple[Keys, Stubs]:
    """Pair stubs at random, never into a key of `taken`; return all keys, and the stubs left."""
    for _ in range(ROUNDS_IN_POOL):
        rng.shuffle(stubs)
        even = len(stubs) // 2 * 2
        odd = stubs[even:]
        taken, left = _place(stubs[0:even:2], stubs[1:even:2], taken, num_nodes)
        stubs = np.concatenate([odd, left])
    return taken, stubs


def _swap_in(stubs: Stubs, taken: Keys, num_nodes: int, rng: np.random.Generator) -> Keys:
    """Place the last stubs by opening one random edge for every two stubs."""
    for _ in range(ROUNDS_OF_SWAPS):
        if len(stubs) == 0:
            return taken
        if len(taken) == 0:
            break
        rng.shuffle(stubs)
        opened = np.unique(rng.integers(len(taken), size=len(stubs) // 2))
        ends = _ends(taken[opened], num_nodes)  # (2 * opened,)
        now, later = stubs[: len(ends)], stubs[len(ends) :]
        taken, left = _place(now, ends, np.delete(taken, opened), num_nodes)
        stubs = np.concatenate([later, left])
    raise ValueError(
        f"{len(stubs)} stubs cannot be placed: no simple graph with these degrees was found"
    )


def _place(left: Stubs, right: Stubs, taken: Keys, num_nodes: int) -> tuple[Keys, Stubs]:
    """Add the pairs (left, right) that are new; return all keys, and the stubs of the others."""
    loops = left == right
    keys = np.minimum(left, right).astype(np.int64) * num_nodes + np.maximum(left, right)
    fresh, repeated = _distinct(keys[~loops])
    places = np.searchsorted(taken, fresh)
    known = np.zeros(len(fresh), bool)
    inside = places < len(taken)
    known[inside] = taken[places[inside]] == fresh[inside]
    refused = np.concatenate([repeated, fresh[known]])
    stubs = np.concatenate([left[loops], right[loops], _ends(refused, num_nodes)])
    merged = np.concatenate([taken, fresh[~known]])
    merged.sort(kind="stable")  # two sorted runs: one merge
    return merged, stubs


def _distinct(keys: Keys) -> tuple[Keys, Keys]:
    """Sort in place; return the distinct keys and the repeats."""
    keys.sort()
    repeats = np.zeros(len(keys), bool)
    repeats[1:] = keys[1:] == keys[:-1]
    return keys[~repeats], keys[repeats]


def _ends(keys: Keys, num_nodes: int) -> Stubs:
    """Return both node ids of every pair, `(2 * pairs,)`: all first ids, then all second ones."""
    return np.concatenate(np.divmod(keys, num_nodes)).astype(np.int32)
