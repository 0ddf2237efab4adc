"""Synthetic graphs, each with one property that could cause trouble.

No default was chosen on them until the probe was built, with a look at them (docs/decisions/0016);
therefore `fresh_graphs` has others.

Nodes are drawn from a fixed seed: half of them train (fewer in one kind), a quarter test, and the
rest are unused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.float32]
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class GraphTask:
    """A graph with edge-free features, labels, training nodes and test nodes."""

    edges: Ints  # (num_edges, 2), no loops
    features: Rows  # (num_nodes, num_features)
    labels: Ints  # (num_nodes,), below 0 for none
    train: Ints
    test: Ints


def draw_graph(how: tuple["Kind", int, float], *, share: float = 1.0) -> GraphTask:
    """Draw a graph of a kind; `share` scales its number of nodes."""
    kind, num_nodes, trained = how
    rng = np.random.default_rng(7)
    labels, edges, features = kind(rng, int(num_nodes * share))
    order = rng.permutation(len(labels))
    order = order[labels[order] >= 0]  # the others have no label
    quarter = len(order) // 4
    return GraphTask(
        edges=edges[edges[:, 0] != edges[:, 1]],
        features=features.astype(np.float32),
        labels=labels,
        train=order[: int(trained * len(order))],
        test=order[-quarter:],
    )


def blocks(
    rng: Rng, n: int, *, classes: int, degree: int, alike: float, shift: int = 0, rare: float = 0.0
) -> tuple[Ints, Ints]:
    """Labels, and edges that with probability `alike` lead to the class `shift` further."""
    chances = [1 - rare, rare] if rare else np.full(classes, 1 / classes)
    labels = rng.choice(classes, n, p=chances)
    senders = rng.integers(0, n, n * degree // 2)
    receivers = rng.integers(0, n, len(senders))
    chosen = rng.random(len(senders)) < alike
    for label in range(classes):
        ours = chosen & ((labels[senders] + shift) % classes == label)
        receivers[ours] = rng.choice(np.flatnonzero(labels == label), int(ours.sum()))
    return labels, np.column_stack([senders, receivers])


def hints(rng: Rng, labels: Ints, *, width: int, size: float) -> NDArray[Any]:
    """Features: a centre per class, with coordinates of size `size`, plus noise of size one."""
    centres = size * rng.normal(size=(int(labels.max()) + 1, width))
    return centres[labels] + rng.normal(size=(len(labels), width))


def _blocks(width: int = 16, size: float = 0.3, **how: Any) -> "Kind":
    def make(rng: Rng, n: int) -> tuple[Ints, Ints, NDArray[Any]]:
        labels, edges = blocks(rng, n, **how)
        return labels, edges, hints(rng, labels, width=width, size=size)

    return make


def constant_features(rng: Rng, n: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """Only edges are informative."""
    labels, edges = blocks(rng, n, classes=4, degree=30, alike=0.7)
    return labels, edges, np.ones((n, 3))


def label_is_degree(rng: Rng, n: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """Nodes with many neighbours are positive; a few have very many."""
    weights = rng.pareto(1.5, n) + 1
    edges = rng.choice(n, (5 * n, 2), p=weights / weights.sum())
    degrees = np.bincount(edges.ravel(), minlength=n)
    is_hub = (degrees > np.quantile(degrees, 0.7)).astype(np.int64)
    return is_hub, edges, rng.normal(size=(n, 8))


def edges_at_random(rng: Rng, n: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """Two features determine the label, but only together."""
    features = rng.normal(size=(n, 6))
    labels = (features[:, 0] * features[:, 1] > 0).astype(np.int64)
    return labels, rng.integers(0, n, (5 * n, 2)), features


def features_of_neighbors(rng: Rng, n: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """The label is the majority of the neighbours' first feature, which is independent of their own
    labels."""
    edges = rng.integers(0, n, (6 * n, 2))
    first = rng.integers(0, 2, n)
    votes = 2 * first - 1
    totals = np.bincount(edges[:, 0], votes[edges[:, 1]], minlength=n)
    totals += np.bincount(edges[:, 1], votes[edges[:, 0]], minlength=n)
    return (totals > 0).astype(np.int64), edges, np.column_stack([first, rng.normal(size=(n, 4))])


def mines(rng: Rng, n: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """A board with eight neighbours per field; half of them show how many mines are around."""
    side = int(n**0.5)
    fields = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.column_stack([one.ravel(), other.ravel()])
            for one, other in (
                (fields[:, :-1], fields[:, 1:]),
                (fields[:-1], fields[1:]),
                (fields[:-1, :-1], fields[1:, 1:]),
                (fields[:-1, 1:], fields[1:, :-1]),
            )
        ]
    )
    is_mine = (rng.random(side * side) < 0.2).astype(np.int64)
    around = np.bincount(edges[:, 0], is_mine[edges[:, 1]], minlength=side * side)
    around += np.bincount(edges[:, 1], is_mine[edges[:, 0]], minlength=side * side)
    hidden = rng.random(side * side) < 0.5
    counts = np.eye(9)[around.astype(np.int64)] * ~hidden[:, None]
    return is_mine, edges, np.column_stack([counts, hidden])


Kind = Callable[[Rng, int], tuple[Ints, Ints, NDArray[Any]]]

KINDS: dict[str, tuple[Kind, int, float]] = {
    "neighbours alike": (_blocks(classes=4, degree=10, alike=0.8), 3_000, 0.5),
    "neighbours of the next class": (
        _blocks(classes=4, degree=10, alike=0.8, shift=1),
        3_000,
        0.5,
    ),
    "edges say nothing": (_blocks(classes=4, degree=10, alike=0.0), 3_000, 0.5),
    "edges at random, two features": (edges_at_random, 4_000, 0.5),
    "features say all": (_blocks(8, 3.0, classes=3, degree=10, alike=0.9), 3_000, 0.5),
    "constant features": (constant_features, 3_000, 0.5),
    "200 nodes": (_blocks(8, 0.4, classes=3, degree=8, alike=0.8), 200, 0.5),
    "2 % of nodes labelled": (_blocks(12, 0.4, classes=3, degree=12, alike=0.8), 5_000, 0.02),
    "40 classes": (_blocks(32, classes=40, degree=20, alike=0.7), 8_000, 0.5),
    "2 % positive": (_blocks(10, classes=2, degree=10, alike=0.9, rare=0.02), 20_000, 0.5),
    "100 neighbours": (_blocks(12, 0.2, classes=3, degree=100, alike=0.5), 6_000, 0.5),
    "the label is the degree": (label_is_degree, 5_000, 0.5),
    "features of neighbours": (features_of_neighbors, 4_000, 0.5),
    "mines on a board": (mines, 10_000, 0.5),
}
"""Function that draws the graph, number of nodes, and share of training nodes."""
