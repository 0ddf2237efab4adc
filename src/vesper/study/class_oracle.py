"""Class oracle: the paper's GIN whose encoder knows the class of every node (erratum 16, B).

    message of node u    e_c, the unit vector of its class c;  W_1 = W_2 = identity
    x1[v] = e_y + sum over sampled neighbours of e_c + noise
    x2[v] = h1[v] + sum over sampled neighbours of h1[u] + noise,    h1 = normalise(ReLU(x1))
    score[v, c] = log p_c + a x1[v, c] + b x2[v, c] + k p_c

A neighbour has the class of the node with the probability that an edge joins equal classes, and
otherwise a class in proportion to class shares. Degrees are the published ones. a, b and k are
fitted on nodes of their own.

This is no bound: codes other than unit vectors exist. But features never give classes away this
well, no training is involved, and for rows of equal length unit vectors of this many classes are
nearly as far apart as unit-length codes can be.

The other coordinates of a row, where no class is, matter only by their length after ReLU: the sum
of their squares has mean noise_std^2 / 2 and variance 5/4 noise_std^4 each.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.study.paper_nodes import PaperNodes

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

FIT_NODES, TEST_NODES = 4_000, 16_000
NEWTON_STEPS = 12
RIDGE = 1e-6
"""Keeps the Newton step defined where a feature carries nothing."""


@dataclass(frozen=True, kw_only=True)
class OracleSetting:
    """Distribution of nodes and neighbours, and the noise."""

    class_shares: Floats
    homophily: float
    node_degrees: Floats
    """(max_degree + 1,) share of nodes by sampled degree."""
    neighbor_degrees: Floats
    """(max_degree + 1,) the same for nodes at the ends of edges."""
    width: int
    noise_std: float


def oracle_setting(
    nodes: PaperNodes,
    class_shares: Floats,
    *,
    noise_std: float,
    max_degree: int,
    all_full: bool = False,
) -> OracleSetting:
    """Make the setting of a set; `all_full` gives every node D neighbours."""
    full = (np.arange(max_degree + 1) == max_degree).astype(float)
    return OracleSetting(
        class_shares=class_shares,
        homophily=nodes.homophily,
        node_degrees=full if all_full else nodes.degree_shares(max_degree=max_degree),
        neighbor_degrees=full if all_full else nodes.edge_end_shares(max_degree=max_degree),
        width=nodes.width,
        noise_std=noise_std,
    )


def oracle_accuracy(setting: OracleSetting, *, seed: int = 0) -> float:
    """Return the accuracy of the oracle on simulated nodes; its standard error is below 0.004."""
    rng = np.random.default_rng(seed)
    labels, first, second = _release(setting, FIT_NODES + TEST_NODES, rng)
    shares = np.broadcast_to(setting.class_shares, first.shape)
    features = np.stack([first, second, shares], axis=2)  # (nodes, classes, 3)
    features /= features.std(axis=(0, 1)) + RIDGE
    offsets = np.log(setting.class_shares)
    weights = _fit(features[:FIT_NODES], offsets, labels[:FIT_NODES])
    answers = (features[FIT_NODES:] @ weights + offsets).argmax(axis=1)
    return float((answers == labels[FIT_NODES:]).mean())


def _release(
    setting: OracleSetting, count: int, rng: np.random.Generator
) -> tuple[Labels, Floats, Floats]:
    """Draw nodes: classes, and the class coordinates of both layers, (count, num_classes)."""
    labels = rng.choice(len(setting.class_shares), count, p=setting.class_shares)
    degrees = rng.choice(len(setting.node_degrees), count, p=setting.node_degrees)
    first, joined = _first_layer(setting, labels, degrees, rng)
    second = _normalised(setting, first, rng)
    most = len(setting.node_degrees) - 1
    for k in range(most):
        receivers = np.flatnonzero(degrees > k)
        classes = _class_of(joined[receivers], k)
        theirs = rng.choice(len(setting.neighbor_degrees), len(classes), p=setting.neighbor_degrees)
        rows, _ = _first_layer(setting, classes, theirs, rng)
        second[receivers] += _normalised(setting, rows, rng)
    second += setting.noise_std * rng.standard_normal(second.shape)
    return labels, first, second


def _first_layer(
    setting: OracleSetting, labels: Labels, degrees: Labels, rng: np.random.Generator
) -> tuple[Floats, Labels]:
    """Perturbed rows of the first layer, and the classes of all neighbours as counts."""
    same = rng.binomial(degrees, setting.homophily)
    counts = rng.multinomial(degrees - same, setting.class_shares)  # (count, num_classes)
    at = np.arange(len(labels)), labels
    counts[at] += same
    rows = counts + setting.noise_std * rng.standard_normal(counts.shape)
    rows[at] += 1.0
    return rows, counts


def _class_of(counts: Labels, place: int) -> Labels:
    """Class of the neighbour at a place among the neighbours sorted by class."""
    classes: Labels = (counts.cumsum(axis=1) <= place).sum(axis=1)
    return classes


def _normalised(setting: OracleSetting, rows: Floats, rng: np.random.Generator) -> Floats:
    """ReLU and normalisation of whole rows, whose other coordinates are noise alone."""
    others = setting.width - rows.shape[1]
    rest = others / 2 + np.sqrt(others * 1.25) * rng.standard_normal(len(rows))
    positive = np.maximum(rows, 0.0)
    squares = (positive**2).sum(axis=1) + setting.noise_std**2 * np.maximum(rest, 0.0)
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))  # normalise(0) = 0
    normalised: Floats = positive / lengths[:, None]
    return normalised


def _fit(features: Floats, offsets: Floats, labels: Labels) -> Floats:
    """Fit one weight per feature by maximum likelihood: Newton's method for the softmax."""
    weights = np.zeros(features.shape[2])
    ones = np.arange(len(labels))
    for _ in range(NEWTON_STEPS):
        logits = features @ weights + offsets
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        means = np.einsum("nc,ncf->nf", chances, features)
        slope = (features[ones, labels] - means).sum(axis=0)
        squares = np.einsum("nc,ncf,ncg->fg", chances, features, features) - means.T @ means
        step = np.linalg.solve(squares + RIDGE * len(labels) * np.eye(len(weights)), slope)
        weights = weights + step
    return weights
