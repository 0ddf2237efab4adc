"""Claim S-VFGNN: the paper's bound is correct for GIN and violated by GCN."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.certify import exhaustive_move, moved_rows, moved_rows_by_edge
from vesper.mechanism.reference.gcn import GcnAggregation
from vesper.mechanism.reference.gcn_clamped import ClampedGcn
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.linear import DegreeWeights, degrees_of
from vesper.mechanism.reference.vfgnn_bound import VfgnnOutput

Floats = NDArray[np.float64]
GIN, GCN = GinAggregation(), GcnAggregation(min_degree=0)


def squared_move(output: VfgnnOutput, graph: Graph, features: list[float]) -> float:
    column = np.array(features)[:, None]
    rows = [output.embed(each, column) for each in (graph, toggle_edge(graph, (0, 1)))]
    return float(np.square(rows[0] - rows[1]).sum())


def test_gin_attains_the_claimed_bound_for_one_layer(
    double_star: Callable[[int], Graph],
) -> None:
    output = VfgnnOutput(GIN, max_degree=2, num_layers=1, norm=3.0)
    # The edge adds 2 to each centre, which has 1 with it and -1 without: both change sign.
    squared = squared_move(output, double_star(1), [2.0, 2.0, -3.0, -3.0])
    assert squared == pytest.approx(8 * 3.0**2)
    assert output.claimed_edge_sensitivity() ** 2 == pytest.approx(squared)
    assert output.edge_sensitivity() ** 2 == pytest.approx(squared)
    assert squared > (0.99 * output.edge_sensitivity()) ** 2


def embedded(output: VfgnnOutput, features: Floats) -> Callable[[Graph], Floats]:
    return lambda graph: output.embed(graph, features)[None]  # one choice


def at_most(degree: int) -> Callable[[Graph], bool]:
    return lambda graph: bool(degrees_of(graph).max() <= degree)


def turning_leaf(degree: int) -> float:
    """Feature of a leaf whose row changes sign when its centre, of feature 1, loses a neighbour.

    leaf / 2 + 1 / sqrt(2 (d + 1)) is below 0 and leaf / 2 + 1 / sqrt(2 d) above.
    """
    return -1 / math.sqrt(2 * (degree + 1)) - 1 / math.sqrt(2 * degree)


def test_refuted_for_gcn_by_one_star() -> None:
    star = Graph.from_edges(21, [(0, 1 + k) for k in range(20)])
    output = VfgnnOutput(GCN, max_degree=20, num_layers=1, norm=1.0)
    assert output.claimed_edge_sensitivity() ** 2 == pytest.approx(8.0)
    squared = squared_move(output, star, [1.0, 0.0, *[turning_leaf(20)] * 19])
    assert squared >= 76.0


def test_refuted_for_gcn_by_two_joined_stars(double_star: Callable[[int], Graph]) -> None:
    output = VfgnnOutput(GCN, max_degree=20, num_layers=1, norm=1.0)
    squared = squared_move(output, double_star(19), [1.0, 1.0, *[turning_leaf(20)] * 38])
    assert squared >= 152.0
    assert squared <= output.edge_sensitivity() ** 2
    assert output.edge_sensitivity() ** 2 == pytest.approx(160.0)


@pytest.mark.parametrize("aggregation", [GIN, GCN, ClampedGcn(min_degree=2)], ids=lambda a: "")
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_the_bound_and_the_row_count_hold_on_all_graphs_of_five_nodes(
    aggregation: DegreeWeights, num_layers: int
) -> None:
    features = np.random.default_rng(7).uniform(-1.0, 1.0, size=(5, 3))
    for degree in (2, 4):
        output = VfgnnOutput(aggregation, max_degree=degree, num_layers=num_layers, norm=1.0)
        certificate = exhaustive_move(
            embedded(output, features), num_nodes=5, admits=at_most(degree)
        )
        assert certificate.move <= output.edge_sensitivity()
    for graph, _, moved in moved_rows_by_edge(
        lambda graph: output.embed(graph, features), num_nodes=5
    ):
        bounded = VfgnnOutput(
            aggregation,
            max_degree=int(degrees_of(graph).max()),
            num_layers=num_layers,
            norm=1.0,
        )
        assert len(moved) <= bounded.max_rows_moved()


@pytest.mark.nightly
@pytest.mark.parametrize("aggregation", [GIN, GCN], ids=["gin", "gcn"])
def test_the_bound_holds_on_all_graphs_with_six_nodes(aggregation: DegreeWeights) -> None:
    features = np.random.default_rng(8).uniform(-1.0, 1.0, size=(6, 3))
    for degree in (3, 5):
        output = VfgnnOutput(aggregation, max_degree=degree, num_layers=2, norm=1.0)
        certificate = exhaustive_move(
            embedded(output, features), num_nodes=6, admits=at_most(degree)
        )
        assert 0 < certificate.move <= output.edge_sensitivity()


@pytest.mark.parametrize(("aggregation", "num_layers"), [(GIN, 2), (GCN, 1)], ids=["gin", "gcn"])
def test_the_count_of_rows_is_attained(
    aggregation: DegreeWeights, num_layers: int, double_star: Callable[[int], Graph]
) -> None:
    graph = double_star(2)
    output = VfgnnOutput(aggregation, max_degree=3, num_layers=num_layers, norm=1.0)
    features = np.random.default_rng(3).uniform(0.1, 1.0, size=(6, 3))
    rows = [output.embed(each, features) for each in (graph, toggle_edge(graph, (0, 1)))]
    assert int(moved_rows(rows[0] - rows[1]).sum()) == output.max_rows_moved() == 6


@pytest.mark.parametrize("max_degree", [1, 2, 5, 20])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_the_claim_is_a_bound_for_gin_at_every_size(max_degree: int, num_layers: int) -> None:
    output = VfgnnOutput(GIN, max_degree=max_degree, num_layers=num_layers, norm=1.0)
    assert output.edge_sensitivity() <= output.claimed_edge_sensitivity() * (1 + 1e-12)


def test_refuses_invalid_parameters() -> None:
    with pytest.raises(InputError, match="max_degree"):
        VfgnnOutput(GIN, max_degree=0, num_layers=1, norm=1.0)
    with pytest.raises(InputError, match="num_layers"):
        VfgnnOutput(GIN, max_degree=1, num_layers=0, norm=1.0)
    with pytest.raises(InputError, match="norm"):
        VfgnnOutput(GIN, max_degree=1, num_layers=1, norm=0.0)
