import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.fingerprint import refuse_directed

GOOD = Graph.from_edges(5, [(0, 1), (1, 2), (0, 4), (3, 4)])


def graph(indptr: list[int], neighbors: list[int]) -> Graph:
    return Graph(indptr=np.array(indptr), neighbors=np.array(neighbors, dtype=np.int32))


def test_graphs_from_the_builders_are_accepted() -> None:
    refuse_directed(GOOD)
    refuse_directed(Graph.from_edges(3, []))
    wide = GOOD.neighbors.astype(np.int64)
    refuse_directed(Graph(indptr=GOOD.indptr, neighbors=wide))


@pytest.mark.parametrize(
    ("indptr", "neighbors", "why"),
    [
        ([0, 1, 1], [1], "one-way edges"),
        ([0, 1, 2, 3], [1, 2, 0], "one-way edges"),
        ([0, 2, 4], [1, 1, 0, 0], "row 0 with a self-loop, a repeated"),
        ([0, 2, 3, 4], [2, 1, 0, 0], "row 0 with a self-loop, a repeated"),
        ([0, 1], [0], "row 0"),
        ([0, 1, 2], [1, 2], "out of range"),
        ([0, 1, 2], [1, -1], "out of range"),
        ([0, 3, 2], [1, 0], "out of range"),
        ([1, 1, 2], [1, 0], "out of range"),
    ],
)
def test_everything_else_is_refused(indptr: list[int], neighbors: list[int], why: str) -> None:
    with pytest.raises(InputError, match=why):
        refuse_directed(graph(indptr, neighbors))
