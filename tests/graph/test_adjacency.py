"""Adjacency matrices, networkx graphs and named ends of edges as pairs."""

from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pytest
import torch

from vesper.errors import InputError
from vesper.graph.foreign import read_foreign
from vesper.graph.graph import Graph
from vesper.graph.ids import Ids

SAME = Graph.from_edges(4, [(0, 1), (1, 2), (1, 3)])
DENSE = np.zeros((4, 4))
DENSE[[0, 1, 1], [1, 2, 3]] = 0.5
NAMES = Ids(pa.array(["a", "b", "c", "d"], type=pa.large_string()))


class WithAdjacency:
    """Interface of a PyG `Data` after `ToSparseTensor`."""

    num_nodes, x, y, edge_index = 4, None, None, None

    def __init__(self, adj_t: Any) -> None:
        self.adj_t = adj_t


class SparseTensor:
    """Interface of the matrix of torch_sparse."""

    def coo(self) -> Any:
        row, col = DENSE.nonzero()
        return torch.tensor(row), torch.tensor(col), None


def is_same(graph: Graph) -> bool:
    same = [(each.indptr.tolist(), each.neighbors.tolist()) for each in (graph, SAME)]
    return bool(same[0] == same[1])


@pytest.mark.parametrize(
    "graph",
    [
        DENSE,
        DENSE.astype(bool),
        DENSE.tolist(),
        torch.tensor(DENSE),
        torch.tensor(DENSE, dtype=torch.bfloat16),
        torch.tensor(DENSE).to_sparse(),
        WithAdjacency(torch.tensor(DENSE).to_sparse()),
        WithAdjacency(SparseTensor()),
        networkx.from_edgelist([(1, 0), (2, 1), (3, 1)]),
        networkx.MultiDiGraph([(0, 1), (1, 0), (1, 2), (1, 3), (1, 3), (2, 2)]),
    ],
    ids=lambda graph: type(graph).__name__,
)
def test_every_kind_gives_the_same_graph(graph: Any) -> None:
    assert is_same(read_foreign(graph, num_nodes=4).graph)


@pytest.mark.filterwarnings("ignore:Sparse CS")  # torch calls these layouts beta
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_compressed_layouts_of_torch(layout: str) -> None:
    tensor = torch.tensor(DENSE)
    blocks = ((2, 2),) if layout == "bsr" else ()
    assert is_same(read_foreign(getattr(tensor, f"to_sparse_{layout}")(*blocks)).graph)


def test_two_rows_and_two_columns_are_pairs() -> None:
    assert read_foreign(np.array([[0, 0], [1, 2]]), num_nodes=3).graph.num_edges == 2
    assert read_foreign(np.array([[0, 1], [1, 0]]), num_nodes=3).graph.num_edges == 1


def test_a_stored_zero_is_not_an_edge() -> None:
    indices, values = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.0, 1.0])
    graph = read_foreign(
        torch.sparse_coo_tensor(indices, values, (3, 3), check_invariants=True)
    ).graph
    assert graph.num_edges == 1


def test_ends_of_edges_are_ids_if_nodes_have_any() -> None:
    pairs = np.array([["a", "b", "b"], ["b", "c", "d"]])
    for given in (pairs, pairs.tolist(), networkx.from_edgelist(pairs.T.tolist())):
        read = read_foreign(given, num_nodes=4, ids=NAMES)
        assert is_same(read.graph)
        assert read.graph.ids is NAMES, "the ledger compares versions by id"
    with pytest.raises(InputError, match=r"1 ends of edges are not ids of nodes \(first 1: z\)"):
        read_foreign(np.array([["a"], ["z"]]), num_nodes=4, ids=NAMES)
    with pytest.raises(InputError, match="expected text like the ids of the nodes, got numbers"):
        read_foreign(np.array([[0], [1]]), num_nodes=4, ids=NAMES)
    with pytest.raises(InputError, match=r"got text; give the id of each row .* with ids="):
        read_foreign(pairs, num_nodes=4)


def test_nodes_of_networkx_are_rows_in_its_order_unless_they_are_numbers() -> None:
    graph = networkx.Graph()
    graph.add_nodes_from(["x", "z", "y"])
    graph.add_edge("x", "y")
    read = read_foreign(graph, num_nodes=3)
    assert read.ids is not None
    assert read.ids.take(range(3)) == ["x", "z", "y"]
    assert read.graph.neighbors.tolist() == [2, 0]
    with pytest.raises(InputError, match="without any"):
        read_foreign(networkx.Graph())
    with pytest.raises(InputError, match="expected whole numbers or text as ids"):
        read_foreign(networkx.from_edgelist([((0, 1), (1, 1))]))


def test_unusable_matrices_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected a square matrix, got shape \(2, 3\)"):
        read_foreign(torch.ones(2, 3).to_sparse(), num_nodes=3)
    broken = DENSE.copy()
    broken[0, 0] = np.nan
    with pytest.raises(InputError, match="found NaN in it; write 0 for none"):
        read_foreign(broken, num_nodes=4)
    with pytest.raises(InputError, match="expected a sparse matrix, got str; pass edge_index"):
        read_foreign(WithAdjacency("none"))
