"""Every aggregation that a door can release: one edge moves it by at most what is charged."""

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.grid import STEPS, Messages, to_grid
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.reference.certify import Certificate, exhaustive_move
from vesper.mechanism.release import PROVED_AGGREGATIONS

Floats = NDArray[np.float64]
Make = Callable[[int], Aggregation]
"""Number of nodes -> aggregation."""


def equal_attention(num_nodes: int) -> GridAttention:
    ones = np.ones((num_nodes, 1), dtype=np.float32)
    return GridAttention(keys=ones, queries=ones)


def mixed_attention(num_nodes: int) -> GridAttention:
    keys = np.array([[0.6, 0.8] if k % 2 else [0.8, -0.6] for k in range(num_nodes)], dtype="f4")
    return GridAttention(keys=keys, queries=keys[::-1])


MAKES: dict[str, Make] = {
    "sum": lambda num_nodes: NeighborSum(),
    "attention": equal_attention,
    "mixed attention": mixed_attention,
    "maximum": lambda num_nodes: GridMax(),
    "clamped gcn 1": lambda num_nodes: GridGcn(min_degree=1),
    "clamped gcn 2": lambda num_nodes: GridGcn(min_degree=2),
}
NEAR = {"sum": 1.0, "attention": 1.0, "maximum": 1.0, "clamped gcn 1": 0.93}
"""Share of the bound that some graph of up to five nodes attains."""

every = pytest.mark.parametrize("name", MAKES)


def test_every_aggregation_that_may_be_released_is_tested_here() -> None:
    assert {type(make(2)) for make in MAKES.values()} == set(PROVED_AGGREGATIONS)


def limit_of(aggregation: Aggregation) -> float:
    """The move that is charged for, in steps."""
    return math.sqrt(2) * aggregation.endpoint_shift * aggregation.steps


def signs(num_nodes: int) -> Iterator[Messages]:
    """Every way to give each node a message of one coordinate and norm 1."""
    for choice in product((-STEPS, STEPS), repeat=num_nodes):
        yield np.array(choice, dtype=np.int8)[:, None]


@cache
def worst(name: str, num_nodes: int) -> Certificate:
    """Search all graphs of a size, all edges and all signs, with the function that a door calls."""
    aggregation, choices = MAKES[name](num_nodes), list(signs(num_nodes))

    def outputs(graph: Graph) -> Floats:
        return np.array([aggregation.aggregate(graph, each, None) for each in choices], dtype=float)

    return exhaustive_move(outputs, num_nodes=num_nodes)


@every
def test_one_edge_moves_at_most_what_is_charged_and_some_edge_nearly_as_much(name: str) -> None:
    limit = limit_of(MAKES[name](2))
    certificates = [worst(name, n) for n in range(2, 6)]
    most = max(each.move for each in certificates)
    assert most <= limit * (1 + 1e-12)
    if name in NEAR:
        assert most >= NEAR[name] * limit * (1 - 1e-12)
        assert not most <= 0.5 * limit  # half of the bound is not a bound


@every
def test_only_rows_that_are_charged_move(name: str) -> None:
    aggregation = MAKES[name](5)
    rows = worst(name, 5).rows
    assert rows <= 5 if aggregation.moves_others else rows <= 2


def test_a_neighbor_of_an_endpoint_moves_only_under_clamped_gcn() -> None:
    assert worst("clamped gcn 1", 4).rows > 2


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["clamped gcn 1", "clamped gcn 2"])  # rows of others move
def test_one_edge_moves_no_more_on_all_graphs_with_six_nodes(name: str) -> None:
    assert worst(name, 6).move <= limit_of(MAKES[name](6)) * (1 + 1e-12)


def random_messages(rng: np.random.Generator, num_nodes: int, width: int) -> Messages:
    rows = rng.standard_normal((num_nodes, width))
    return to_grid((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


@settings(deadline=None)
@given(st.sampled_from(sorted(MAKES)), st.integers(0, 2**32 - 1))
def test_one_edge_moves_no_more_on_random_graphs(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    hub = [(0, k) for k in range(1, int(rng.integers(1, n + 1)))]
    pairs = rng.integers(0, n, size=(int(rng.integers(0, 60)), 2)).tolist()
    graph = Graph.from_edges(n, [(a, b) for a, b in [*hub, *pairs]])
    aggregation, messages = MAKES[name](n), random_messages(rng, n, int(rng.integers(1, 6)))
    before = aggregation.aggregate(graph, messages, None).astype(float)
    after = aggregation.aggregate(toggle_edge(graph, (0, 1)), messages, None)
    assert np.linalg.norm(before - after) <= limit_of(aggregation)


@every
def test_some_receivers_get_the_same_rows_as_all(name: str) -> None:
    graph = Graph.from_edges(6, [(0, 1), (0, 2), (0, 3), (3, 4), (1, 2)])
    aggregation = MAKES[name](6)
    messages = random_messages(np.random.default_rng(1), 6, 3)
    some = np.array([4, 0, 5])
    assert np.array_equal(
        aggregation.aggregate(graph, messages, None)[some],
        aggregation.aggregate(graph, messages, some),
    )


@every
def test_long_or_missing_messages_are_refused(name: str) -> None:
    graph, aggregation = Graph.from_edges(2, [(0, 1)]), MAKES[name](2)
    with pytest.raises(InputError, match="sum of squares"):
        aggregation.aggregate(graph, np.full((2, 2), STEPS, dtype=np.int8), None)
    with pytest.raises(InputError, match=r"one message for each|one per node"):
        aggregation.aggregate(graph, np.zeros((3, 2), dtype=np.int8), None)
