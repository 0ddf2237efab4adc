import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.grid import to_grid

GRAPH = Graph.from_edges(5, [(0, 1), (0, 2), (1, 2), (3, 0)])


def test_it_is_the_sum_of_messages_weighted_by_key_and_query() -> None:
    rows = np.random.default_rng(3).standard_normal((3, 5, 3))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    keys, queries, values = rows.astype(np.float32)
    grid_keys, grid_queries = to_grid(keys).astype(int), to_grid(queries).astype(int)
    messages = to_grid(values)
    expected = np.zeros((5, 3), dtype=int)
    for v in range(5):
        for u in GRAPH.neighbors[GRAPH.indptr[v] : GRAPH.indptr[v + 1]]:
            score = max(0, int(grid_keys[u] @ grid_queries[v])) / 64**2
            expected[v] += np.trunc(score * messages[u]).astype(int)
    aggregated = GridAttention(keys=keys, queries=queries).aggregate(GRAPH, messages, None)
    assert aggregated.tolist() == expected.tolist()


def test_opposite_keys_and_queries_have_weight_0() -> None:
    keys = np.array([[1.0], [-1.0], [1.0], [0.0], [1.0]], dtype=np.float32)
    ones = np.full((5, 1), 64, dtype=np.int8)
    aggregated = GridAttention(keys=keys, queries=keys).aggregate(GRAPH, ones, None)
    assert aggregated[:, 0].tolist() == [64, 0, 64, 0, 0]


def test_keys_are_checked_and_copied() -> None:
    keys, queries = np.ones((5, 1), dtype=np.float32), np.ones((5, 1), dtype=np.float32)
    for wrong in ({"keys": 1.1 * keys}, {"queries": 1.1 * queries}):
        with pytest.raises(InputError, match="norm at most 1"):
            GridAttention(**{"keys": keys, "queries": queries, **wrong})
    with pytest.raises(InputError, match="keys and queries of one shape"):
        GridAttention(keys=keys, queries=queries[:4])
    attention = GridAttention(keys=keys, queries=queries)
    keys[:] = queries[:] = 0
    assert attention.aggregate(GRAPH, np.full((5, 1), 64, dtype=np.int8), None).any()
    with pytest.raises(InputError, match="Expected 4 keys, one per node, got 5"):
        attention.refuse(np.zeros((4, 1), dtype=np.int8))
