"""VFGNN: noise on the normalised output of L layers, as the paper analyses this baseline.

    h^(0) = features;    h^(l) = ReLU(aggregate(h^(l-1))),  l < L
    output[v] = norm h_v / ||h_v||,    h = aggregate(h^(L-1))

A row that moves at all can move by 2 norm, however little its input moved. So the sensitivity
depends on a count of rows, and the count on whether the weights depend on degrees.
"""

import math

import numpy as np

from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import DegreeWeights, Floats, normalize_rows, rounded_up
from vesper.privacy.accounting.safe_numbers import expect_count, expect_positive


class VfgnnOutput:
    """Normalised output of `num_layers` layers.

    Claim: S-VFGNN. One edge moves the output by at most 2 norm sqrt(rows),
        rows = 2 (1 + (D - 1) + ... + (D - 1)^reach), D = `max_degree`, where reach = L - 1 for
        weights that move only the endpoints' rows (GIN) and L for GCN. The paper claims
        2 norm sqrt(2 (1 + D + ... + D^{L-1})) for both: a bound for GIN, violated by GCN.
    Relation: differ by one edge, degrees at most `max_degree` in both graphs.
    Assumes (caller verifies): features and linear maps do not depend on edges; the degree bound.
    Moves: at most `rows`.
    Tight: for GIN and one layer, yes. For GCN and one layer, D = 20, two joined stars attain
        152 norm^2 of the 160 norm^2. Loose for more layers.
    Proof: docs/claims/S-VFGNN.md.

    Raises:
        InputError: max_degree or num_layers below 1, norm not above 0.
    """

    def __init__(
        self, aggregation: DegreeWeights, *, max_degree: int, num_layers: int, norm: float
    ) -> None:
        expect_count("max_degree", max_degree, at_least=1)
        expect_count("num_layers", num_layers, at_least=1)
        expect_positive("norm", norm)
        self.aggregation = aggregation
        self.max_degree, self.num_layers, self.norm = max_degree, num_layers, norm

    def embed(self, graph: Graph, features: Floats) -> Floats:
        """Compute the output before the noise, (num_nodes, width); features may have any length."""
        operator = self.aggregation.operator(graph)
        rows = features
        for _ in range(self.num_layers - 1):
            rows = np.maximum(operator @ rows, 0.0)
        return normalize_rows(operator @ rows, norm=self.norm)

    def max_rows_moved(self) -> int:
        """Return the most nodes within `reach` of an endpoint."""
        reach = self.num_layers if self.aggregation.moves_neighbors else self.num_layers - 1
        return int(2 * sum((self.max_degree - 1) ** hop for hop in range(reach + 1)))

    def edge_sensitivity(self) -> float:
        """Return 2 norm sqrt(rows)."""
        return rounded_up(2 * self.norm * math.sqrt(self.max_rows_moved()))

    def claimed_edge_sensitivity(self) -> float:
        """Return the paper's bound: correct for GIN, violated by GCN."""
        rows = 2 * sum(self.max_degree**hop for hop in range(self.num_layers))
        return 2 * self.norm * math.sqrt(rows)
