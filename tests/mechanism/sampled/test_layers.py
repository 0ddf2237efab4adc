"""Sampled layers against the dense matrices that the claims are proved for."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vesper.graph.graph import Graph
from vesper.mechanism.reference.gcn import GcnAggregation
from vesper.mechanism.reference.gcn_truncated import TruncatedGcn
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.linear import LinearAggregation
from vesper.mechanism.sampled.layers import Aggregator, SampledGraph, degree_weights_of

NODES = 7


def graph_of(mask: int) -> Graph:
    pairs = [(a, b) for a in range(NODES) for b in range(a)]
    return Graph.from_edges(NODES, [pair for k, pair in enumerate(pairs) if mask >> k & 1])


def sampled(
    graph: Graph, aggregator: Aggregator, *, max_degree: int = NODES, num_layers: int = 1
) -> SampledGraph:
    return SampledGraph(
        graph,
        aggregator=aggregator,
        num_layers=num_layers,
        max_degree=max_degree,
        min_degree=2,
        seed=0,
    )


AGGREGATORS: list[Aggregator] = ["gin", "gcn", "truncated-gcn"]


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@given(mask=st.integers(0, 2 ** (NODES * (NODES - 1) // 2) - 1))
def test_with_all_neighbours_it_is_the_dense_matrix(aggregator: Aggregator, mask: int) -> None:
    graph = graph_of(mask)
    batch = sampled(graph, aggregator).sample(np.arange(NODES), step=0)
    rows = torch.from_numpy(np.random.default_rng(mask).normal(size=(NODES, 3)))
    aggregation = degree_weights_of(aggregator, min_degree=2)
    dense = torch.from_numpy(LinearAggregation.operator(aggregation, graph))
    torch.testing.assert_close(
        batch.layers[0].gather(rows[torch.from_numpy(batch.nodes)]),
        dense @ rows,
        rtol=1e-6,
        atol=1e-6,  # weights are float32
    )


@given(mask=st.integers(0, 2 ** (NODES * (NODES - 1) // 2) - 1))
def test_branch_receivers_are_those_of_low_degree(mask: int) -> None:
    graph = graph_of(mask)
    layer = sampled(graph, "truncated-gcn").sample(np.arange(NODES), step=0).layers[0]
    assert layer.branch_receivers is not None
    assert layer.branch_receivers.tolist() == np.flatnonzero(np.diff(graph.indptr) < 2).tolist()
    assert sampled(graph, "gcn").sample(np.arange(NODES), step=0).layers[0].branch_receivers is None


def test_degrees_are_those_of_the_sample() -> None:
    """A centre of degree six with two sampled neighbours counts as a node of degree two."""
    star = Graph.from_edges(NODES, [(0, leaf) for leaf in range(1, NODES)])
    batch = sampled(star, "gcn", max_degree=2).sample(np.array([0]), step=0)
    gathered = batch.layers[0].gather(torch.ones(len(batch.nodes), 1))
    assert len(batch.nodes) == 3
    assert gathered.item() == pytest.approx(1 / 3 + 2 / np.sqrt(3 * 2), rel=1e-6)


def test_steps_differ_and_a_seed_repeats() -> None:
    star = Graph.from_edges(101, [(0, leaf) for leaf in range(1, 101)])
    first, second = sampled(star, "gin", max_degree=5), sampled(star, "gin", max_degree=5)
    root = np.array([0])
    assert first.sample(root, step=1).nodes.tolist() == second.sample(root, step=1).nodes.tolist()
    assert first.sample(root, step=1).nodes.tolist() != second.sample(root, step=2).nodes.tolist()


def test_layers_narrow_to_the_roots() -> None:
    path = Graph.from_edges(NODES, [(k, k + 1) for k in range(NODES - 1)])
    batch = sampled(path, "gin", num_layers=2).sample(np.array([0]), step=0)
    rows = torch.eye(NODES)[torch.from_numpy(batch.nodes)]
    for layer in batch.layers:
        rows = layer.gather(rows)
        assert len(rows) == layer.num_receivers
    assert batch.num_roots == len(rows) == 1
    assert rows[0].tolist() == [2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]  # row 0 of (A + I)^2


def test_aggregator_names() -> None:
    assert isinstance(degree_weights_of("gin", min_degree=2), GinAggregation)
    assert isinstance(degree_weights_of("gcn", min_degree=2), GcnAggregation)
    truncated = degree_weights_of("truncated-gcn", min_degree=4)
    assert isinstance(truncated, TruncatedGcn)
    assert truncated.min_degree == 4


@pytest.mark.parametrize("aggregator", ["gcn", "truncated-gcn"])
def test_weights_are_those_of_both_degrees(aggregator: Aggregator) -> None:
    """Weights looked up by pairs of degrees equal those of the aggregation bit for bit."""
    graph = Graph.from_edges(NODES, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (5, 6)])
    aggregation = degree_weights_of(aggregator, min_degree=2)
    layer = sampled(graph, aggregator).sample(np.arange(NODES), step=0).layers[0]
    own, between = aggregation.weigh(graph)
    expected = np.diag(own)
    expected[np.repeat(np.arange(NODES), np.diff(graph.indptr)), graph.neighbors] = between
    gathered = layer.gather(torch.eye(NODES)).numpy()  # a row of weights for each receiver
    np.testing.assert_array_equal(gathered, expected.astype(np.float32))
