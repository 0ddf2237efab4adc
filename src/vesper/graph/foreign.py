"""Graphs of other libraries: PyG, DGL, scipy, networkx, data frames, arrays. None is imported.

    edges {u, v} = pairs in either direction, once each, without self-loops

The kind of an object follows from its attributes: `edge_index` (a PyG `Data`), `edges()` and
`ndata` (a DGL graph), `tocoo()` (a scipy sparse matrix), `adjacency()` (networkx), named columns
(an edge table); otherwise it is an adjacency matrix, or an array or lists of shape (2, num_pairs).
Ends of edges are rows of the features or, in tables, arrays and networkx, ids if nodes have any.
Sorting pairs in numpy takes seconds for ten million edges and about 50 bytes per pair; put larger
graphs into a party folder, which is read in bounded memory.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.adjacency import (
    dense_pairs,
    is_dense_adjacency,
    is_networkx,
    is_torch_sparse,
    networkx_pairs,
    numbered_pairs,
    sparse_pairs,
)
from vesper.graph.csr import EdgeCounts
from vesper.graph.frames import is_frame, matrix_of, pairs_of, part_of
from vesper.graph.graph import Graph, neighbor_dtype
from vesper.graph.ids import Ids

ACCEPTED = (
    "a vesper.Graph, a PyG Data, a DGL or networkx graph, an adjacency matrix, an edge table or "
    "edges of shape (2, E)"
)

NARROW_FLOATS = ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2")
"""Types of torch that numpy does not have; float32 holds all of their values."""

Pairs = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ForeignGraph:
    """A graph, and the features, labels and masks that came with it, or None."""

    graph: Graph
    counts: EdgeCounts
    ids: Ids | None = None
    """Ids of the nodes, as given or as the graph names them."""
    features: Any = None
    labels: Any = None
    train: Any = None
    validation: Any = None


def read_foreign(
    graph: Any, *, num_nodes: int | None = None, ids: Ids | None = None
) -> ForeignGraph:
    """Read a graph of any accepted kind.

    Args:
        graph: object of one of the accepted kinds.
        num_nodes: number of rows of the features; a bare edge array does not give it.
        ids: ids of the nodes in the order of the features; None: their numbers.
    """
    return _named(_read(graph, num_nodes=num_nodes, ids=ids), ids)


def _named(foreign: ForeignGraph, ids: Ids | None) -> ForeignGraph:
    """Attach the ids, under which the ledger compares versions of a graph."""
    ids = ids or foreign.ids
    if ids is None:
        return foreign
    if len(ids) != foreign.graph.num_nodes:
        raise InputError(
            f"ids: expected one id per node of the graph, which has {foreign.graph.num_nodes}, got "
            f"{len(ids)}"
        )
    graph = Graph(foreign.graph.indptr, foreign.graph.neighbors, ids)
    return replace(foreign, graph=graph, ids=ids)


def _read(graph: Any, *, num_nodes: int | None, ids: Ids | None) -> ForeignGraph:
    if isinstance(graph, Graph):
        num_edges = graph.num_edges
        return ForeignGraph(graph=graph, counts=EdgeCounts(num_edges, num_edges, 0, 0))
    if part_of(graph, "edge_index") is not None or part_of(graph, "adj_t") is not None:
        return _from_pyg(graph, num_nodes)
    if callable(part_of(graph, "edges")) and part_of(graph, "ndata") is not None:
        return _from_dgl(graph)
    if callable(part_of(graph, "tocoo")):
        return _from_scipy(graph)
    return _from_pairs(graph, num_nodes=num_nodes, ids=ids)


def _from_pairs(graph: Any, *, num_nodes: int | None, ids: Ids | None) -> ForeignGraph:
    """Read networkx, an edge table, an adjacency matrix, or pairs."""
    if is_networkx(graph):
        pairs, ids = networkx_pairs(graph, ids=ids)
        pairs, num_nodes = numbered_pairs(pairs, ids), len(ids)
    elif is_frame(graph):
        pairs = numbered_pairs(pairs_of(graph, "graph"), ids)
    elif is_torch_sparse(graph):
        pairs, num_nodes = sparse_pairs(graph)
    elif isinstance(graph, list | tuple) or hasattr(graph, "__array__"):
        pairs = as_array(graph, "graph")
        if pairs.dtype.kind in "fiub" and is_dense_adjacency(pairs.shape, num_nodes=num_nodes):
            pairs, num_nodes = dense_pairs(pairs)
        else:
            pairs = numbered_pairs(pairs, ids)
    else:
        raise InputError(f"graph: expected {ACCEPTED}, got {type(graph).__name__}{_hint(graph)}")
    read, counts = graph_of_pairs(pairs, num_nodes=num_nodes)
    return ForeignGraph(graph=read, counts=counts, ids=ids)


def graph_of_pairs(
    pairs: NDArray[Any], *, num_nodes: int | None, what: str = "graph"
) -> tuple[Graph, EdgeCounts]:
    """Build the undirected graph of (2, E) pairs of node numbers.

    >>> graph_of_pairs(np.array([[0, 1, 2], [1, 0, 2]]), num_nodes=3)[0].num_edges
    1
    """
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        is_transposed = pairs.ndim == 2 and pairs.shape[1] == 2
        remedy = (
            "pass its transpose" if is_transposed else "put sources in row 0 and targets in row 1"
        )
        raise InputError(
            f"{what}: expected pairs of shape (2, E), got shape {pairs.shape}; {remedy}"
        )
    if pairs.size and not np.issubdtype(pairs.dtype, np.integer):
        raise InputError(f"{what}: expected integer node numbers, got {pairs.dtype}; convert them")
    if num_nodes is None:
        raise InputError(
            f"{what}: expected features with bare edges, found none; pass features, whose rows "
            f"give the number of nodes"
        )
    ends = pairs.astype(np.int64, copy=False)
    wrong = (ends < 0) | (ends >= num_nodes)  # (2, E)
    if wrong.any():
        raise InputError(
            f"{what}: expected node numbers from 0 to {num_nodes - 1}, found {int(wrong.sum())} "
            f"others ({first_three(ends[wrong][:3])}); number nodes like the rows of the features"
        )
    return _csr(ends, num_nodes)


def as_array(value: Any, what: str) -> NDArray[Any]:
    """Convert an array, a tensor on any device, a list or a sparse matrix to a numpy array."""
    try:
        if is_frame(value):
            return matrix_of(value, what)
        if callable(getattr(value, "detach", None)):  # torch
            value = value.detach().cpu()
            value = value.to_dense() if is_torch_sparse(value) else value
            value = value.float() if str(value.dtype) in NARROW_FLOATS else value
        elif callable(getattr(value, "toarray", None)):  # scipy sparse
            value = value.toarray()
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what}: expected data that numpy can read ({error})") from None


def _csr(ends: Pairs, num_nodes: int) -> tuple[Graph, EdgeCounts]:
    """Build the graph by sorting receiver * num_nodes + sender; repeats become adjacent."""
    between = ends[:, ends[0] != ends[1]]  # (2, pairs that are not self-loops)
    keys = np.concatenate(
        [between[0] * num_nodes + between[1], between[1] * num_nodes + between[0]]
    )
    keys.sort()
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    keys = keys[first]  # (2 * num_edges,)
    indptr = np.searchsorted(keys, np.arange(num_nodes + 1, dtype=np.int64) * num_nodes)
    graph = Graph(
        indptr=indptr.astype(np.int64, copy=False),
        neighbors=(keys % max(num_nodes, 1)).astype(neighbor_dtype(num_nodes)),
    )
    rows, num_edges = ends.shape[1], len(keys) // 2
    self_loops = rows - between.shape[1]
    return graph, EdgeCounts(rows, num_edges, self_loops, rows - self_loops - num_edges)


def _from_pyg(data: Any, num_nodes: int | None) -> ForeignGraph:
    if part_of(data, "edge_index") is None:
        pairs = _adjacency_pairs(data.adj_t)
    else:
        pairs = as_array(data.edge_index, "graph.edge_index")
    graph, counts = graph_of_pairs(
        pairs,
        num_nodes=_nodes_of_pyg(data, num_nodes),
        what="graph.edge_index",
    )
    return ForeignGraph(
        graph=graph,
        counts=counts,
        features=part_of(data, "x"),
        labels=part_of(data, "y"),
        train=part_of(data, "train_mask"),
        validation=part_of(data, "val_mask"),
    )


def _adjacency_pairs(adjacency: Any) -> NDArray[Any]:
    """Read `adj_t`, which PyG's `ToSparseTensor` puts in the place of `edge_index`."""
    if is_torch_sparse(adjacency):
        return sparse_pairs(adjacency)[0]
    if callable(part_of(adjacency, "coo")):  # a SparseTensor of torch_sparse
        row, col, *_ = adjacency.coo()
        return np.stack([as_array(row, "graph.adj_t"), as_array(col, "graph.adj_t")])
    raise InputError(
        f"graph.adj_t: expected a sparse matrix, got {type(adjacency).__name__}; pass edge_index"
    )


def _nodes_of_pyg(data: Any, num_nodes: int | None) -> int | None:
    """Return its own count; where PyG infers that from the edges, the rows of the features."""
    own_count = part_of(data, "num_nodes")
    if own_count is None or (num_nodes is not None and _infers_num_nodes(data)):
        return num_nodes
    return int(own_count)


def _infers_num_nodes(data: Any) -> bool:
    """Return whether a PyG `Data` has nothing but edges, so that its last nodes may be missing."""
    keys = part_of(data, "keys")
    names = set(keys() if callable(keys) else keys or ())
    return bool(names) and names <= {"edge_index", "edge_attr", "edge_weight"}


def _from_dgl(dgl_graph: Any) -> ForeignGraph:
    if not getattr(dgl_graph, "is_homogeneous", True):
        raise InputError(
            "graph: expected a DGL graph with one kind of node and edge, got several; "
            "pass dgl.to_homogeneous(graph)"
        )
    src, dst = dgl_graph.edges()
    pairs = np.stack([as_array(src, "graph.edges()"), as_array(dst, "graph.edges()")])
    graph, counts = graph_of_pairs(pairs, num_nodes=int(dgl_graph.num_nodes()))
    columns = {name: dgl_graph.ndata[name] for name in dgl_graph.ndata}
    return ForeignGraph(
        graph=graph,
        counts=counts,
        features=columns.get("feat"),
        labels=columns.get("label"),
        train=columns.get("train_mask"),
        validation=columns.get("val_mask"),
    )


def _from_scipy(matrix: Any) -> ForeignGraph:
    """Read a square sparse matrix; every nonzero entry is an edge."""
    entries = matrix.tocoo()
    if len(entries.shape) != 2 or entries.shape[0] != entries.shape[1]:
        raise InputError(f"graph: expected a square matrix, got shape {tuple(entries.shape)}")
    stored = np.asarray(entries.data) != 0
    pairs = np.stack([np.asarray(entries.row), np.asarray(entries.col)])[:, stored]
    graph, counts = graph_of_pairs(pairs, num_nodes=int(entries.shape[0]))
    return ForeignGraph(graph=graph, counts=counts)


def _hint(graph: Any) -> str:
    if callable(part_of(graph, "to_homogeneous")):
        return "; pass graph.to_homogeneous()"
    if callable(part_of(graph, "is_undirected")):
        return " without edge_index"
    return ""
