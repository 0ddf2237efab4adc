"""Adjacency matrices and networkx graphs as pairs of node numbers. No library is imported.

| graph | edges |
| --- | --- |
| dense or sparse (n, n) | every entry that is not 0 |
| networkx | pairs of nodes, which are named by ids or by their numbers 0 to n - 1 |
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.frames import distinct_ids, id_column, part_of
from vesper.graph.ids import Ids


def is_networkx(graph: Any) -> bool:
    """Whether it is a graph of networkx."""
    return callable(part_of(graph, "adjacency")) and callable(part_of(graph, "number_of_nodes"))


def networkx_pairs(graph: Any, *, ids: Ids | None) -> tuple[NDArray[Any], Ids]:
    """Return pairs of ids, (2, E), and the ids of all nodes in the order of the features.

    Without ids, nodes 0 to n - 1 are rows of the features; any other nodes are rows in the order of
    the graph.

    Raises:
        InputError: the graph has no nodes, or nodes that are neither whole numbers nor text.
    """
    nodes = list(graph.nodes)
    if not nodes:
        raise InputError("graph: expected nodes, got a networkx graph without any")
    if ids is None:
        named = np.empty(len(nodes), dtype=object)
        named[:] = nodes
        ids = distinct_ids(named, "graph.nodes", num_nodes=None)
        if ids.are_integers and np.array_equal(np.sort(ids.values), np.arange(len(nodes))):
            ids = Ids(pa.array(np.arange(len(nodes))))
    pairs = np.empty((2, graph.number_of_edges()), dtype=object)
    for number, edge in enumerate(graph.edges()):
        pairs[0, number], pairs[1, number] = edge[:2]
    return pairs, ids


def is_torch_sparse(value: Any) -> bool:
    """Whether it is a tensor of torch with a sparse layout."""
    return callable(part_of(value, "detach")) and _layout(value) != "torch.strided"


def sparse_pairs(tensor: Any) -> tuple[NDArray[np.int64], int]:
    """Return the entries of a sparse adjacency matrix, (2, E), and its number of nodes."""
    shape = _square(tuple(tensor.shape))
    entries = tensor.detach().cpu()
    if _layout(entries) != "torch.sparse_coo":
        entries = entries.to_sparse_coo()
    entries = entries.coalesce()
    stored = (entries.values() != 0).numpy()
    pairs: NDArray[np.int64] = entries.indices().numpy()[:, stored]
    return pairs, shape


def is_dense_adjacency(shape: tuple[int, ...], *, num_nodes: int | None) -> bool:
    """Whether an array of numbers is an adjacency matrix rather than pairs of shape (2, E)."""
    return len(shape) == 2 and shape[0] == shape[1] != 2 and num_nodes in (None, shape[0])


def dense_pairs(matrix: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the entries of a dense adjacency matrix, (2, E), and its number of nodes."""
    if matrix.dtype.kind == "f" and np.isnan(matrix).any():
        raise InputError("graph: expected an adjacency matrix, found NaN in it; write 0 for none")
    return np.stack(np.nonzero(matrix)).astype(np.int64), len(matrix)


def numbered_pairs(pairs: NDArray[Any], ids: Ids | None) -> NDArray[Any]:
    """Return the pairs in node numbers, where nodes have ids."""
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.size == 0:
        return np.zeros((2, 0), dtype=np.int64) if pairs.size == 0 else pairs
    if ids is None:
        if pairs.dtype.kind in "OUS" and any(isinstance(end, str) for end in pairs.flat):
            raise InputError(
                "graph: expected integer node numbers, got text; give the id of each row of the "
                "features with ids=..., or features as a data frame indexed by id"
            )
        return pairs
    wanted = id_column(pairs.reshape(-1), "graph")
    if wanted.type != ids.values.type:
        expected, got = ("whole numbers", "text") if ids.are_integers else ("text", "numbers")
        raise InputError(
            f"graph: expected {expected} like the ids of the nodes, got {got}; convert the ends of "
            f"the edges"
        )
    numbers = ids.positions(wanted)
    unknown = pairs.reshape(-1)[numbers < 0]
    if len(unknown):
        raise InputError(
            f"graph: {len(unknown)} ends of edges are not ids of nodes ({first_three(unknown)}); "
            f"give these nodes features, or leave out their edges"
        )
    return numbers.reshape(2, -1)


def _square(shape: tuple[int, ...]) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"graph: expected a square matrix, got shape {shape}")
    return shape[0]


def _layout(value: Any) -> str:
    return str(getattr(value, "layout", "torch.strided"))
