"""Accuracy that noise alone allows: no feature, training or decoder gets above it (erratum 16, A).

    P(D_y | y) <= sum over d of share_d Phi(Phi^-1(q_y) + mu_d),    q_y = Q(D_y),  sum of q_y = 1
    accuracy   <= max over q of sum over y of p_y P(D_y | y)
    mu_d       = sqrt(L) norm_d / noise_std

A root's release is L rows of norm at most norm_d plus noise. D_y is the set of releases that the
decoder answers with class y, and Q is noise without any rows. Proof: docs/errata.md.

    GIN             norm_d = 1 + d
    truncated GCN   norm_d = 1 / (d + 1) + d s / sqrt(d + 1),  d >= D_min;  all of 1 below D_min

The maximum is concave in q. For every multiplier t,

    accuracy <= t + sum over y of max over q of (p_y f(q) - t q),      f(q) = the sum over d above

so whatever t the search ends with, its value is an upper bound.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.mechanism.sampled import layer_sensitivity
from vesper.study.paper_nodes import PaperNodes

Floats = NDArray[np.float64]

FARTHEST = 40.0
"""Quantiles beyond this have probability 0."""
HALVINGS = 46
SENDER_WEIGHTS = ("edge-ends", "promise", "worst")
"""What is assumed of the neighbours of a GCN row: degrees as at the ends of edges (mean weight), at
least D_min, which is what the paper's sensitivity assumes, or one neighbour each."""

_cdf = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)), otypes=[float])


def accuracy_bound(class_shares: Floats, shifts: Floats, weights: Floats) -> float:
    """Return the most that any decoder can reach on nodes whose rows are behind the noise.

    Args:
        class_shares: (num_classes,) positive, summing to 1.
        shifts: (num_degrees,) mu_d, not negative.
        weights: (num_degrees,) share of nodes, summing to 1 or, if some are left out, to less.
    """

    def quantiles(log_t: float) -> Floats:
        """Where the slope of p_y f is t; slopes fall in z, from far above to far below."""
        low, high = (np.full(len(class_shares), end) for end in (-FARTHEST, FARTHEST))
        goal = log_t - np.log(class_shares)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            terms = -np.multiply.outer(middle, shifts) - shifts**2 / 2 + np.log(weights)
            most = terms.max(axis=1)
            slopes = most + np.log(np.exp(terms - most[:, None]).sum(axis=1))
            low, high = np.where(slopes > goal, middle, low), np.where(slopes > goal, high, middle)
        middles: Floats = (low + high) / 2
        return middles

    low, high = -400.0, 400.0  # log t: the larger, the smaller all q
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = _cdf(quantiles(middle)).sum() > 1
        low, high = (middle, high) if above else (low, middle)
    z, t = quantiles(high), math.exp(high)
    reached = (_cdf(z[:, None] + shifts) * weights).sum(axis=1)  # (num_classes,)
    return float(t + (class_shares * reached - t * _cdf(z)).sum())


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that a layer perturbs."""

    degrees: Floats
    """(num_degrees,) sampled degrees of nodes whose rows have a bounded norm."""
    norms: Floats
    """(num_degrees,) largest norm of a row, by degree."""
    shares: Floats
    """(num_degrees,) share of nodes."""

    @property
    def free_share(self) -> float:
        """Share of nodes whose rows have no bounded norm; they count as always right."""
        return float(1 - self.shares.sum())


def gin_rows(nodes: PaperNodes, *, max_degree: int, all_full: bool = False) -> Rows:
    """Return sums over a node and its sampled neighbours.

    Args:
        nodes: nodes of the set.
        max_degree: D.
        all_full: assume D neighbours of every node, in place of the published degrees.
    """
    degrees = np.arange(max_degree + 1.0)
    shares = nodes.degree_shares(max_degree=max_degree)
    if all_full:
        shares = (degrees == max_degree).astype(float)
    return _without_empty(degrees, norms=1 + degrees, shares=shares)


def gcn_rows(nodes: PaperNodes, *, max_degree: int, min_degree: int, senders: str) -> Rows:
    """Return truncated GCN rows; `senders` is one of `SENDER_WEIGHTS`."""
    degrees = np.arange(max_degree + 1.0)
    ends = nodes.edge_end_shares(max_degree=max_degree)
    sender_weight = {
        "edge-ends": float((ends / np.sqrt(degrees + 1)).sum()),
        "promise": 1 / math.sqrt(min_degree + 1),
        "worst": 1 / math.sqrt(2),
    }[senders]
    norms = 1 / (degrees + 1) + degrees * sender_weight / np.sqrt(degrees + 1)
    shares = np.where(degrees >= min_degree, nodes.degree_shares(max_degree=max_degree), 0.0)
    return _without_empty(degrees, norms=norms, shares=shares)


def _without_empty(degrees: Floats, *, norms: Floats, shares: Floats) -> Rows:
    some = shares > 0
    return Rows(degrees=degrees[some], norms=norms[some], shares=shares[some])


def bound_of(rows: Rows, class_shares: Floats, *, noise_std: float, num_layers: int = 2) -> float:
    """Return the bound for rows and noise, counting nodes without bounded rows as always right."""
    shifts = math.sqrt(num_layers) * rows.norms / noise_std
    return rows.free_share + accuracy_bound(class_shares, shifts, rows.shares)


def gin_bound(
    nodes: PaperNodes, class_shares: Floats, *, epsilon: float, max_degree: int, all_full: bool
) -> float:
    """Return the bound for the paper's GIN at a claimed epsilon."""
    noise_std = nodes.noise_std(
        epsilon=epsilon, max_degree=max_degree, layer_sensitivity=math.sqrt(2)
    )
    rows = gin_rows(nodes, max_degree=max_degree, all_full=all_full)
    return bound_of(rows, class_shares, noise_std=noise_std)


def gcn_bound(
    nodes: PaperNodes,
    class_shares: Floats,
    *,
    epsilon: float,
    max_degree: int,
    min_degree: int,
    senders: str,
) -> float:
    """Return the bound for the paper's truncated GCN at a claimed epsilon."""
    claimed = layer_sensitivity("truncated-gcn", min_degree=min_degree, max_degree=max_degree)
    noise_std = nodes.noise_std(epsilon=epsilon, max_degree=max_degree, layer_sensitivity=claimed)
    rows = gcn_rows(nodes, max_degree=max_degree, min_degree=min_degree, senders=senders)
    return bound_of(rows, class_shares, noise_std=noise_std)
