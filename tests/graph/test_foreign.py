"""Graphs of other libraries, replaced by small fakes with the same interface."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from vesper.errors import InputError
from vesper.graph.foreign import as_array, graph_of_pairs, read_foreign
from vesper.graph.graph import Graph

PAIRS = np.array(
    [[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 3, 1]]
)  # {0, 1} and {1, 2} repeated, a self-loop at 3
SAME = Graph.from_edges(5, [(0, 1), (1, 2)])


class FakeDgl:
    """Interface of a homogeneous DGL graph."""

    is_homogeneous = True

    def __init__(self, columns: dict[str, Any]) -> None:
        self.ndata = columns

    def edges(self) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(PAIRS[0]), torch.from_numpy(PAIRS[1])

    def num_nodes(self) -> int:
        return 5


def matrix() -> Any:
    stored = np.ones(PAIRS.shape[1])
    return sparse.coo_matrix((stored, (PAIRS[0], PAIRS[1])), shape=(5, 5))


def pyg(**columns: Any) -> SimpleNamespace:
    return SimpleNamespace(edge_index=torch.from_numpy(PAIRS), num_nodes=5, **columns)


def is_same(graph: Graph) -> bool:
    return (
        graph.indptr.tolist() == SAME.indptr.tolist()
        and graph.neighbors.tolist() == SAME.neighbors.tolist()
        and graph.neighbors.dtype == SAME.neighbors.dtype
    )


@pytest.mark.parametrize(
    "graph",
    [
        SAME,
        PAIRS,
        PAIRS.astype(np.int32),
        torch.from_numpy(PAIRS),
        matrix(),
        matrix().tocsr(),
        sparse.csr_array(matrix()),
        pyg(),
        FakeDgl({}),
    ],
    ids=["vesper", "numpy", "int32", "torch", "coo", "csr", "csr_array", "pyg", "dgl"],
)
def test_every_kind_gives_the_same_graph(graph: Any) -> None:
    assert is_same(read_foreign(graph, num_nodes=5).graph)


def test_rows_are_counted() -> None:
    counts = read_foreign(PAIRS, num_nodes=5).counts
    assert (counts.rows, counts.edges, counts.self_loops, counts.merged) == (6, 2, 1, 3)


def test_random_pairs_agree_with_the_slow_builder() -> None:
    pairs = np.random.default_rng(0).integers(0, 40, size=(2, 300))
    graph, _ = graph_of_pairs(pairs, num_nodes=40)
    slow = Graph.from_edges(40, [(int(u), int(v)) for u, v in pairs.T])
    assert graph.indptr.tolist() == slow.indptr.tolist()
    assert graph.neighbors.tolist() == slow.neighbors.tolist()


def test_a_graph_without_edges() -> None:
    graph, _ = graph_of_pairs(np.zeros((2, 0)), num_nodes=3)
    assert (graph.num_nodes, graph.num_edges) == (3, 0)


def test_a_stored_zero_is_not_an_edge() -> None:
    zero = sparse.coo_matrix((np.array([0.0, 2.0]), (np.arange(2), np.arange(1, 3))), shape=(3, 3))
    assert read_foreign(zero).graph.num_edges == 1


def test_features_labels_and_masks_come_with_the_graph() -> None:
    x, y, mask = torch.ones(5, 2), torch.arange(5), torch.ones(5, dtype=torch.bool)
    foreign = read_foreign(pyg(x=x, y=y, train_mask=mask, val_mask=~mask))
    assert foreign.features is x
    assert foreign.labels is y
    assert foreign.train is mask
    foreign = read_foreign(FakeDgl({"feat": x, "label": y, "train_mask": mask}))
    assert foreign.features is x
    assert foreign.labels is y
    assert foreign.validation is None


class Hetero:
    """Interface of a PyG `HeteroData`."""

    def to_homogeneous(self) -> SimpleNamespace:
        return pyg()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise KeyError(f"Tried to collect '{name}' but did not find any occurrences of it")


class NoEdges:
    """Interface of a PyG `Data` without edges."""

    edge_index = None

    def is_undirected(self) -> bool:
        return True


class ManyKinds(FakeDgl):
    """A DGL graph with several kinds of nodes."""

    is_homogeneous = False


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (PAIRS.T, r"shape \(2, E\), got shape \(6, 2\); pass its transpose"),
        (PAIRS[0], r"shape \(2, E\), got shape \(6,\)"),
        (PAIRS + 0.5, "expected integer node numbers, got float64"),
        (PAIRS + 3, r"numbers from 0 to 4, found 4 others \(first 3: 5, 6, 5\)"),
        (PAIRS - 1, "numbers from 0 to 4, found 3 others"),
        (sparse.coo_matrix((3, 4)), r"a square matrix, got shape \(3, 4\)"),
        ([(0, 1), (1, 2), (2, 3)], r"shape \(2, E\), got shape \(3, 2\); pass its transpose"),
        ("edges.csv", "expected a vesper.Graph, .* got str"),
        (Hetero(), "pass graph.to_homogeneous"),
        (ManyKinds({}), "pass dgl.to_homogeneous"),
        (NoEdges(), "got NoEdges without edge_index"),
    ],
)
def test_unreadable_graphs_are_refused(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_foreign(graph, num_nodes=5)


def test_bare_edges_need_the_number_of_nodes() -> None:
    with pytest.raises(InputError, match="expected features with bare edges"):
        read_foreign(PAIRS)


def test_arrays_of_all_kinds() -> None:
    tracked = torch.ones(2, requires_grad=True)
    assert as_array(tracked, "x").tolist() == [1, 1]
    assert as_array(torch.eye(2).to_sparse(), "x").tolist() == [[1, 0], [0, 1]]
    assert as_array(sparse.eye_array(2), "x").tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InputError, match="x: expected data that numpy can read"):
        as_array([[1], [2, 3]], "x")


def test_lists_are_read() -> None:
    graph = read_foreign(PAIRS.tolist(), num_nodes=SAME.num_nodes).graph
    assert graph.neighbors.tolist() == SAME.neighbors.tolist()
