import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.grid import to_grid

GRAPH = Graph.from_edges(5, [(0, 1), (0, 2), (1, 2), (3, 0)])


def test_it_is_the_sum_of_messages_shortened_by_how_much_key_and_query_agree() -> None:
    rows = np.random.default_rng(3).standard_normal((3, 5, 3))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    keys, queries, said = rows.astype(np.float32)
    asked, sent, messages = to_grid(queries).astype(int), to_grid(keys).astype(int), to_grid(said)
    expected = np.zeros((5, 3), dtype=int)
    for v in range(5):
        for u in GRAPH.neighbors[GRAPH.indptr[v] : GRAPH.indptr[v + 1]]:
            score = max(0, int(sent[u] @ asked[v])) / 64**2
            expected[v] += np.trunc(score * messages[u]).astype(int)
    found = GridAttention(keys=keys, queries=queries).aggregate(GRAPH, messages, None)
    assert found.tolist() == expected.tolist()


def test_opposite_minds_do_not_hear_each_other() -> None:
    keys = np.array([[1.0], [-1.0], [1.0], [0.0], [1.0]], dtype=np.float32)
    ones = np.full((5, 1), 64, dtype=np.int8)
    found = GridAttention(keys=keys, queries=keys).aggregate(GRAPH, ones, None)
    assert found[:, 0].tolist() == [64, 0, 64, 0, 0]


def test_keys_are_checked_and_kept_as_they_were() -> None:
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
