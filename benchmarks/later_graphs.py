"""Graphs that were specified when the probe was first built, and looked at when it was fixed.

The graphs of `unseen_graphs` were looked at from the start. These showed that the probe missed
features in more than sixteen directions (docs/decisions/0016). Nobody has looked at `fresh_graphs`.
"""

from typing import Any

import numpy as np
from benchmarks.unseen_graphs import Ints, Kind, Rng, blocks, hints
from numpy.typing import NDArray

GraphArrays = tuple[Ints, Ints, NDArray[Any]]


def sums(edges: Ints, values: NDArray[Any]) -> NDArray[Any]:
    """Sum values, one per node, over neighbours."""
    totals = np.bincount(edges[:, 0], values[edges[:, 1]], minlength=len(values))
    totals += np.bincount(edges[:, 1], values[edges[:, 0]], minlength=len(values))
    return totals


def votes_for_four(rng: Rng, n: int) -> GraphArrays:
    """Each of four features of neighbours counts for one class."""
    edges = rng.integers(0, n, (6 * n, 2))
    features = rng.normal(size=(n, 8))
    totals = np.column_stack([sums(edges, features[:, k]) for k in range(4)])
    return totals.argmax(axis=1), edges, features


def one_of_sixty(rng: Rng, n: int) -> GraphArrays:
    """One feature of neighbours determines the label, of sixty with the same distribution."""
    edges = rng.integers(0, n, (6 * n, 2))
    features = rng.normal(size=(n, 60))
    return (sums(edges, features[:, 17]) > 0).astype(np.int64), edges, features


def thirty_two(rng: Rng, n: int) -> GraphArrays:
    """Neighbours' features determine the label, in a direction that no single feature shows."""
    edges = rng.integers(0, n, (6 * n, 2))
    features = rng.normal(size=(n, 32))
    return (sums(edges, features @ rng.normal(size=32)) > 0).astype(np.int64), edges, features


def three_degrees(rng: Rng, n: int) -> GraphArrays:
    """Three classes: few, some or many neighbours."""
    weights = rng.pareto(2.0, n) + 1
    edges = rng.choice(n, (5 * n, 2), p=weights / weights.sum())
    degrees = np.bincount(edges.ravel(), minlength=n)
    labels = np.digitize(degrees, np.quantile(degrees, (0.4, 0.8)))
    return labels, edges, rng.normal(size=(n, 8))


def shops(rng: Rng, n: int) -> GraphArrays:
    """A fifth are shops, a tenth of them bad, which their features show; their customers are at
    risk."""
    num_shops = n // 5
    bad = rng.random(num_shops) < 0.1
    customers = np.arange(num_shops, n)
    visits = np.column_stack(
        [np.repeat(customers, 5), rng.integers(0, num_shops, 5 * len(customers))]
    )
    harmed = np.bincount(visits[:, 0], bad[visits[:, 1]], minlength=n)[num_shops:] > 0
    labels = np.concatenate([bad, harmed]).astype(np.int64)
    features = rng.normal(size=(n, 6))
    features[:num_shops, 0] += 4 * bad
    is_shop = np.arange(n) < num_shops
    return labels, visits, np.column_stack([features, is_shop])


def mule_chains(rng: Rng, n: int) -> GraphArrays:
    """Money goes through chains of eight positives; all others have three random neighbours."""
    edges = [rng.integers(0, n, (3 * n // 2, 2))]
    members = rng.permutation(n)[: n // 80 * 8].reshape(-1, 8)
    edges.append(np.column_stack([members[:, :-1].ravel(), members[:, 1:].ravel()]))
    labels = np.zeros(n, dtype=np.int64)
    labels[members] = 1
    return labels, np.concatenate(edges), hints(rng, labels, width=8, size=0.4)


def hubs(rng: Rng, n: int) -> GraphArrays:
    """Neighbours of the same class, and a few nodes that neighbour a tenth of all."""
    labels = rng.integers(0, 5, n)
    weights = rng.pareto(1.2, n) + 1
    senders, receivers = rng.choice(n, (2, 12 * n), p=weights / weights.sum())
    is_edge = (labels[senders] == labels[receivers]) | (rng.random(12 * n) < 0.15)
    edges = np.column_stack([senders, receivers])[is_edge]
    return labels, edges, hints(rng, labels, width=16, size=0.25)


def other_class(rng: Rng, n: int) -> GraphArrays:
    """Two classes; nine in ten neighbours are of the other class."""
    labels, edges = blocks(rng, n, classes=2, degree=10, alike=0.8, shift=1)
    return labels, edges, hints(rng, labels, width=8, size=0.15)


def like_features(rng: Rng, n: int) -> GraphArrays:
    """Edges between nodes with similar features: edges repeat what features show."""
    labels = rng.integers(0, 3, n)
    features = hints(rng, labels, width=2, size=1.0)
    order = np.argsort(features[:, 0])
    steps = rng.integers(1, 20, (5, n))
    edges = np.concatenate(
        [np.column_stack([order, order[(np.arange(n) + step) % n]]) for step in steps]
    )
    return labels, edges, features


def wrong_labels(rng: Rng, n: int) -> GraphArrays:
    """Neighbours of the same class, but a third of the labels are recorded at random."""
    truth, edges = blocks(rng, n, classes=3, degree=14, alike=0.8)
    wrong = rng.random(n) < 1 / 3
    labels = np.where(wrong, rng.integers(0, 3, n), truth)
    return labels, edges, hints(rng, truth, width=8, size=0.3)


def ring(rng: Rng, n: int) -> GraphArrays:
    """Edges between nearby nodes on a ring of six sectors; features carry no information."""
    around = np.arange(n)
    steps = rng.integers(1, n // 60, (8, n))
    edges = np.concatenate([np.column_stack([around, (around + step) % n]) for step in steps])
    return around * 6 // n, edges, rng.normal(size=(n, 4))


DEVELOPMENT_KINDS: dict[str, tuple[Kind, int, float]] = {
    "features vote for four classes": (votes_for_four, 6_000, 0.5),
    "one feature of sixty": (one_of_sixty, 6_000, 0.5),
    "thirty-two features together": (thirty_two, 6_000, 0.5),
    "few, some or many neighbours": (three_degrees, 5_000, 0.5),
    "shops and customers": (shops, 10_000, 0.5),
    "mule chains": (mule_chains, 12_000, 0.5),
    "hubs": (hubs, 6_000, 0.5),
    "neighbours of the other class": (other_class, 4_000, 0.5),
    "edges between like features": (like_features, 4_000, 0.5),
    "a third of labels wrong": (wrong_labels, 5_000, 0.5),
    "sectors of a ring": (ring, 6_000, 0.5),
}
"""Same format as `unseen_graphs.KINDS`."""
