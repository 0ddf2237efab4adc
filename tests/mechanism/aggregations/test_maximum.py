import numpy as np

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import STEPS, to_grid
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.reference.coordinate_max import CoordinateMax


def test_it_is_the_maximum_of_claim_s_max_with_floor_0() -> None:
    graph = Graph.from_edges(6, [(0, 1), (0, 2), (1, 2), (3, 0)])  # nodes 4 and 5 are isolated
    rows = np.random.default_rng(4).standard_normal((6, 3))
    grid = to_grid((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    expected = CoordinateMax().aggregate(graph, grid / STEPS) * STEPS
    aggregated = GridMax().aggregate(graph, grid, None)
    assert aggregated.tolist() == expected.tolist()
    assert aggregated.min() == 0
