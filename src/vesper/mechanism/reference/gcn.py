"""GCN under a minimum-degree promise (the paper's Proposition 2), and what one edge does to it.

    aggregated[v] = message[v] / (d_v + 1) + sum over u in N(v) of message[u] s(d_u) s(d_v)
    s(d)          = 1 / sqrt(d + 1)

Removing the edge {p, q} lowers both degrees, so s(d_p) changes for *every* neighbour of p:

    row p of the difference    own    s(d_p - 1)^2 - s(d_p)^2                  for message[p]
                               edge   s(d_p) s(d_q)                            for message[q]
                               drop   s(d_u) (s(d_p - 1) - s(d_p))             for each other u
    row u of the difference           s(d_u) (s(d_p - 1) - s(d_p))             for message[p]
"""

import math
from collections.abc import Callable

import numpy as np

from vesper.errors import InputError, first_three
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import Degrees, DegreeWeights, Floats, degrees_of, rounded_up
from vesper.privacy.accounting.safe_numbers import expect, expect_count

TURNING_DEGREE = 4
"""Degree from which on every term falls as degrees grow (proof: S-GCN-CLAMP, step 3)."""


class GcnAggregation(DegreeWeights):
    """GCN on graphs with all degrees at least `min_degree`.

    Claim: S-GCN. One edge moves the output by at most the largest joint move of two endpoints
        of degree m + 1 or more among neighbours of degree max(m, 1), m = `min_degree`: sqrt 2 at
        m = 0 and 0.847, 0.604, 0.470, 0.325, 0.184 at m = 1, 2, 3, 5, 10. The paper's eta(m) is
        larger, hence a bound; its proof that two rows move is wrong.
    Relation: differ by one edge, and *both* graphs keep the promise.
    Assumes (caller verifies): rows of norm at most 1, edge-free; the promise holds for the other
        graph too; whether it holds is public (a refusal reveals it). It is false in sampled
        subgraphs.
    Moves: both endpoints and all their neighbours, up to d_p + d_q rows.
    Tight: yes, p and q of degree m + 1, with disjoint sets of other neighbours, all of degree m.
    Proof: docs/claims/S-GCN.md.

    Raises:
        InputError: `min_degree` is negative, or a graph breaks the promise.
    """

    moves_neighbors = True

    def __init__(self, *, min_degree: int) -> None:
        expect_count("min_degree", min_degree, at_least=0)
        self.min_degree = min_degree

    def self_weight(self, degrees: Degrees) -> Floats:
        """Return 1 / (d + 1)."""
        return 1 / (np.asarray(degrees) + 1.0)

    def edge_weight(self, sender_degrees: Degrees, receiver_degrees: Degrees) -> Floats:
        """Return 1 / sqrt((d_u + 1) (d_v + 1))."""
        weights: Floats = 1 / np.sqrt(
            (np.asarray(sender_degrees) + 1.0) * (np.asarray(receiver_degrees) + 1.0)
        )
        return weights

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Weight a graph that keeps the promise."""
        low = np.flatnonzero(degrees_of(graph) < self.min_degree)
        if len(low):
            raise InputError(
                f"min_degree: expected at least {self.min_degree} neighbours per node, got fewer "
                f"at {len(low)} nodes ({first_three(low)}); use ClampedGcn, which has no such limit"
            )
        return super().weigh(graph)

    def edge_sensitivity(self) -> float:
        """Return the exact maximum over all pairs of graphs that keep the promise."""
        lowest = self.min_degree + 1  # before the edge is removed
        return largest_joint_move(
            counted=lambda degree: degree,
            neighbor_degree=max(self.min_degree, 1),
            degrees=range(lowest, max(lowest, TURNING_DEGREE) + 1),
        )

    def claimed_edge_sensitivity(self) -> float:
        """Return the paper's eta(m): a bound, 1.03 to 1.46 times the truth for m from 2 to 40.

        Raises:
            InputError: `min_degree` is at most 1, which the paper excludes.
        """
        return eta(self.min_degree)


def eta(min_degree: int) -> float:
    """Paper's sqrt 2 ((1 - 1/m) / (2 m) + 1 / (m (m + 1)) + 1 / (m + 1)), operator norm 1."""
    expect(
        min_degree > 1,
        name="min_degree",
        wanted="min_degree > 1, as in Proposition 2",
        got=min_degree,
        remedy="use 2 or more",
    )
    m = float(min_degree)
    return math.sqrt(2) * ((1 - 1 / m) / (2 * m) + 1 / (m * (m + 1)) + 1 / (m + 1))


def largest_joint_move(
    *, counted: Callable[[int], int], neighbor_degree: int, degrees: range
) -> float:
    """Largest move over the degrees of both endpoints, rounded up.

    Args:
        counted: the degree that enters the weights, as a function of the degree.
        neighbor_degree: the smallest counted degree of any other neighbour.
        degrees: degrees to consider, before the edge is removed.
    """

    def scale(degree: int) -> float:
        return 1 / math.sqrt(counted(degree) + 1)

    neighbor_scale = 1 / math.sqrt(neighbor_degree + 1)

    def square(degree: int, other: int) -> float:
        """Squared move of one endpoint's row and of its other neighbours' rows together."""
        before, after = counted(degree) + 1, counted(degree - 1) + 1
        own = (before - after) / (before * after)  # s(d - 1)^2 - s(d)^2 without cancellation
        drop = neighbor_scale * own / (scale(degree - 1) + scale(degree))
        edge = scale(degree) * scale(other)
        return (own + edge + (degree - 1) * drop) ** 2 + (degree - 1) * drop**2

    most = max(square(p, q) + square(q, p) for p in degrees for q in degrees if p <= q)
    return rounded_up(math.sqrt(most))
