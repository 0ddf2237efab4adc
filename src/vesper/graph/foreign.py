"""Graphs as other libraries hold them: PyG, DGL, scipy, numpy, torch. None of them is imported.

    edges {u, v} = pairs in either direction, once each, without self-loops

What an object is follows from what it has: `edge_index` (a PyG `Data`), `edges()` and `ndata` (a
DGL graph), `tocoo()` (a scipy sparse matrix), or it is an array, or lists, of shape (2, num_pairs).
Sorting pairs in numpy takes seconds for ten million edges and about 50 bytes a pair; larger graphs
belong into a party folder, which is read in bounded memory.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.csr import EdgeCounts
from vesper.graph.graph import Graph, neighbor_dtype

ACCEPTED = "a vesper.Graph, a PyG Data, a DGL graph, a scipy sparse matrix or edges of shape (2, E)"

Pairs = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ForeignGraph:
    """The graph, and what else came with it; None where nothing did."""

    graph: Graph
    counts: EdgeCounts
    features: Any = None
    labels: Any = None
    train: Any = None
    validation: Any = None


def read_foreign(graph: Any, *, num_nodes: int | None = None) -> ForeignGraph:
    """Read a graph of any accepted kind.

    Args:
        graph: what the user holds.
        num_nodes: how many nodes the features know; a bare edge array cannot tell.
    """
    if isinstance(graph, Graph):
        kept = graph.num_edges
        return ForeignGraph(graph=graph, counts=EdgeCounts(kept, kept, 0, 0))
    if _part(graph, "edge_index") is not None:
        return _from_pyg(graph, num_nodes)
    if callable(_part(graph, "edges")) and _part(graph, "ndata") is not None:
        return _from_dgl(graph)
    if callable(_part(graph, "tocoo")):
        return _from_scipy(graph)
    if not isinstance(graph, list | tuple) and not hasattr(graph, "__array__"):
        raise InputError(f"graph: expected {ACCEPTED}, got {type(graph).__name__}{_hint(graph)}")
    graph, counts = graph_of_pairs(as_array(graph, "graph"), num_nodes=num_nodes)
    return ForeignGraph(graph=graph, counts=counts)


def graph_of_pairs(
    pairs: NDArray[Any], *, num_nodes: int | None, what: str = "graph"
) -> tuple[Graph, EdgeCounts]:
    """Make the undirected graph of (2, E) pairs of node numbers.

    >>> graph_of_pairs(np.array([[0, 1, 2], [1, 0, 2]]), num_nodes=3)[0].num_edges
    1
    """
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        turned = pairs.ndim == 2 and pairs.shape[1] == 2
        remedy = "give its transpose" if turned else "row 0 sources, row 1 targets"
        raise InputError(
            f"{what}: expected pairs of shape (2, E), got shape {pairs.shape}; {remedy}"
        )
    if pairs.size and not np.issubdtype(pairs.dtype, np.integer):
        raise InputError(f"{what}: expected whole node numbers, got {pairs.dtype}; convert them")
    if num_nodes is None:
        raise InputError(f"{what}: expected features beside bare edges, to know how many nodes")
    ends = pairs.astype(np.int64, copy=False)
    wrong = (ends < 0) | (ends >= num_nodes)  # (2, E)
    if wrong.any():
        raise InputError(
            f"{what}: expected node numbers from 0 to {num_nodes - 1}, {int(wrong.sum())} are not "
            f"({first_three(ends[wrong][:3])}); number nodes as rows of the features"
        )
    return _csr(ends, num_nodes)


def as_array(value: Any, what: str) -> NDArray[Any]:
    """Give a numpy view of an array, a tensor on any device, a list or a sparse matrix."""
    try:
        if callable(getattr(value, "detach", None)):  # torch
            value = value.detach().cpu()
            value = value.to_dense() if value.is_sparse else value
        elif callable(getattr(value, "toarray", None)):  # scipy sparse
            value = value.toarray()
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what}: expected something numpy can read ({error})") from None


def _csr(ends: Pairs, num_nodes: int) -> tuple[Graph, EdgeCounts]:
    """Sort receiver * num_nodes + sender of both directions; repeats fall together."""
    between = ends[:, ends[0] != ends[1]]  # (2, pairs that are no self-loop)
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
    rows, kept = ends.shape[1], len(keys) // 2
    self_loops = rows - between.shape[1]
    return graph, EdgeCounts(rows, kept, self_loops, rows - self_loops - kept)


def _from_pyg(data: Any, num_nodes: int | None) -> ForeignGraph:
    graph, counts = graph_of_pairs(
        as_array(data.edge_index, "graph.edge_index"),
        num_nodes=_nodes_of_pyg(data, num_nodes),
        what="graph.edge_index",
    )
    return ForeignGraph(
        graph=graph,
        counts=counts,
        features=_part(data, "x"),
        labels=_part(data, "y"),
        train=_part(data, "train_mask"),
        validation=_part(data, "val_mask"),
    )


def _nodes_of_pyg(data: Any, num_nodes: int | None) -> int | None:
    """As many as it says; where it guesses from its edges, as many as features were given."""
    held = _part(data, "num_nodes")
    if held is None or (num_nodes is not None and _infers_num_nodes(data)):
        return num_nodes
    return int(held)


def _infers_num_nodes(data: Any) -> bool:
    """Whether a PyG `Data` holds nothing but edges, so that its last nodes may be missing."""
    keys = _part(data, "keys")
    names = set(keys() if callable(keys) else keys or ())
    return bool(names) and names <= {"edge_index", "edge_attr", "edge_weight"}


def _from_dgl(held: Any) -> ForeignGraph:
    if not getattr(held, "is_homogeneous", True):
        raise InputError(
            "graph: expected a DGL graph with one kind of node and edge, got several; "
            "give dgl.to_homogeneous(graph)"
        )
    src, dst = held.edges()
    pairs = np.stack([as_array(src, "graph.edges()"), as_array(dst, "graph.edges()")])
    graph, counts = graph_of_pairs(pairs, num_nodes=int(held.num_nodes()))
    columns = {name: held.ndata[name] for name in held.ndata}
    return ForeignGraph(
        graph=graph,
        counts=counts,
        features=columns.get("feat"),
        labels=columns.get("label"),
        train=columns.get("train_mask"),
        validation=columns.get("val_mask"),
    )


def _from_scipy(matrix: Any) -> ForeignGraph:
    """Every entry that is not zero is an edge."""
    entries = matrix.tocoo()
    if len(entries.shape) != 2 or entries.shape[0] != entries.shape[1]:
        raise InputError(f"graph: expected a square matrix, got shape {tuple(entries.shape)}")
    stored = np.asarray(entries.data) != 0
    pairs = np.stack([np.asarray(entries.row), np.asarray(entries.col)])[:, stored]
    graph, counts = graph_of_pairs(pairs, num_nodes=int(entries.shape[0]))
    return ForeignGraph(graph=graph, counts=counts)


def _part(held: Any, name: str) -> Any:
    """An attribute, or None; a PyG `HeteroData` raises KeyError for one it does not have."""
    try:
        return getattr(held, name, None)
    except KeyError:
        return None


def _hint(graph: Any) -> str:
    if callable(_part(graph, "to_homogeneous")):
        return "; give graph.to_homogeneous()"
    if callable(_part(graph, "adjacency")) and callable(_part(graph, "number_of_nodes")):
        return "; give networkx.to_scipy_sparse_array(graph)"
    if callable(_part(graph, "is_undirected")):
        return " without edge_index"
    return ""
