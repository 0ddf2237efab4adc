"""Classes of nodes, and how clearly edges follow them: labels, and the pools of a node's stubs.

Node v of class y splits its degree d_v at random over three pools,

    (home, stray, open) ~ Multinomial(d_v; h, (1 - h) s, (1 - h) (1 - s)),
    h = 1 - (1 - b) / (1 + d_v / clear_degree),  b ~ Beta(home_alpha, home_beta),  s = stray_share,

where `home` is the pool of y, `stray` the pool of one other class z, and `open` the pool of all
nodes. A node with a small h lies among the nodes of z, so its neighbours suggest the wrong class.
These nodes keep a graph model from being always right; most have a low degree, so most edges still
join equal classes, as in real data. z is drawn in proportion to class size, with `kinship` times
the weight for classes of the same family, whose features are also close.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """Parameters of how strongly edges follow classes."""

    home_alpha: float
    home_beta: float
    clear_degree: float
    """Degree at which a node strays half as much as a node of degree 0 would."""
    stray_share: float
    kinship: float


def skewed_shares(num_classes: int, *, largest: float, ratio: float) -> tuple[float, ...]:
    """Return one share `largest`, followed by a geometric series with ratio `ratio`.

    >>> [round(share, 2) for share in skewed_shares(4, largest=0.3, ratio=0.5)]
    [0.3, 0.4, 0.2, 0.1]
    """
    series = ratio ** np.arange(num_classes - 1)
    return (largest, *((1 - largest) * series / series.sum()).tolist())


def quotas(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return whole numbers that sum to `total`, near `shares * total` and at least 1 each.

    >>> quotas(np.array([0.62, 0.37, 0.01]), 10).tolist()
    [5, 4, 1]
    """
    exact = shares / shares.sum() * (total - len(shares))
    counts = np.floor(exact).astype(np.int64)
    rest = total - len(shares) - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return np.asarray(counts + 1)


def draw_labels(shares: tuple[float, ...], num_nodes: int, rng: np.random.Generator) -> Labels:
    """Draw one class per node, in random order; every class has at least one node."""
    counts = quotas(np.array(shares), num_nodes)
    labels = np.repeat(np.arange(len(shares), dtype=np.int32), counts)
    rng.shuffle(labels)
    return labels


def draw_strays(
    labels: Labels, families: NDArray[np.int64], kinship: float, rng: np.random.Generator
) -> Labels:
    """Draw for every node another class, which its stray stubs go to."""
    sizes = np.bincount(labels, minlength=len(families)).astype(np.float64)
    related = families[:, None] == families[None, :]  # (classes, classes)
    weights = sizes[None, :] * np.where(related, kinship, 1.0)
    np.fill_diagonal(weights, 0.0)
    strays = np.empty_like(labels)
    for label in range(len(families)):
        nodes = np.flatnonzero(labels == label)
        chances = weights[label] / weights[label].sum()
        strays[nodes] = rng.choice(len(families), size=len(nodes), p=chances)
    return strays


def split_stubs(
    degrees: NDArray[np.int64], mixing: Mixing, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split every degree into home, stray and open stubs."""
    clarity = rng.beta(mixing.home_alpha, mixing.home_beta, size=len(degrees))
    home_share = 1 - (1 - clarity) / (1 + degrees / mixing.clear_degree)
    home = rng.binomial(degrees, home_share)
    stray = rng.binomial(degrees - home, mixing.stray_share)
    return home, stray, degrees - home - stray


def class_pools(
    labels: Labels,
    strays: Labels,
    home: NDArray[np.int64],
    stray: NDArray[np.int64],
    num_classes: int,
) -> Iterator[NDArray[np.int32]]:
    """Yield the stubs of each class pool: node ids, repeated once per stub."""
    for label in range(num_classes):
        at_home = np.flatnonzero(labels == label).astype(np.int32)
        visiting = np.flatnonzero(strays == label).astype(np.int32)
        yield np.concatenate(
            [np.repeat(at_home, home[at_home]), np.repeat(visiting, stray[visiting])]
        )
