"""The frozen CSR graph: the neighbours of each node, and nothing else.

    neighbours of v = neighbors[indptr[v] : indptr[v + 1]], ascending, no duplicates, never v

An undirected edge {u, v} is stored twice, as u in the row of v and v in the row of u. Node numbers
are positions by ascending id. Only `graph/` and `mechanism/` may read these two arrays, which a
test enforces; all other code sees released values.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.drawing.notebook import notebook_table
from vesper.errors import InputError
from vesper.graph.ids import Ids

Neighbors = NDArray[np.int32 | np.int64]


def neighbor_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """Return int32 if all node numbers fit, else int64."""
    return np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected graph without self-loops or parallel edges, read-only.

    Args:
        indptr: (num_nodes + 1,) int64, where each row of `neighbors` starts.
        neighbors: (2 * num_edges,) int32 or int64, ascending within each row.
        ids: ids of the nodes, if any; the ledger's fingerprint takes nodes in their order as text.
    """

    indptr: NDArray[np.int64]
    neighbors: Neighbors
    ids: Ids | None = None

    def __post_init__(self) -> None:
        for array in (self.indptr, self.neighbors):
            array.setflags(write=False)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, including isolated ones."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.neighbors) // 2

    @property
    def nbytes(self) -> int:
        """Bytes of the two arrays: 8 per node and 4 (or 8) per directed edge."""
        return self.indptr.nbytes + self.neighbors.nbytes

    def __repr__(self) -> str:
        """Show it without its edges: logs, tracebacks and notebooks are passed on."""
        return f"Graph(num_nodes={self.num_nodes})"

    def _repr_html_(self) -> str:
        """Show it in a notebook, without anything that depends on edges."""
        facts = {"nodes": f"{self.num_nodes:,}", "edges": "not shown, as notebooks are passed on"}
        return notebook_table("Graph", facts)

    @classmethod
    def from_edges(cls, num_nodes: int, edges: Iterable[tuple[int, int]]) -> "Graph":
        """Build a small graph from pairs; drop self-loops and merge repeats.

        >>> graph = Graph.from_edges(3, [(0, 1), (1, 0), (2, 2)])
        >>> graph.num_edges, graph.neighbors.tolist()
        (1, [1, 0])
        """
        if num_nodes < 0:
            raise InputError(f"num_nodes: expected 0 or more, got {num_nodes}")
        given = _pairs_of(edges)
        wrong = given[(given < 0) | (given >= num_nodes)]
        if len(wrong):
            raise InputError(f"expected node numbers from 0 to {num_nodes - 1}, got {wrong[0]}")
        ordered = np.sort(given[given[:, 0] != given[:, 1]], axis=1)
        pairs = np.unique(ordered, axis=0).reshape(-1, 2)  # (num_edges, 2)
        receivers = np.concatenate([pairs[:, 0], pairs[:, 1]])  # (2 * num_edges,)
        senders = np.concatenate([pairs[:, 1], pairs[:, 0]])  # (2 * num_edges,)
        order = np.lexsort((senders, receivers))
        indptr = np.zeros(num_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(receivers, minlength=num_nodes), out=indptr[1:])
        return cls(indptr=indptr, neighbors=senders[order].astype(neighbor_dtype(num_nodes)))


def _pairs_of(edges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """Convert edges to an integer array of shape (rows, 2)."""
    rows = list(edges)
    try:
        pairs = np.array(rows)
    except ValueError:  # rows of unequal length
        pairs = np.zeros(0)
    is_whole = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu"
    if rows and not is_whole:
        raise InputError(
            f"edges: expected pairs of integer node numbers such as (0, 1), got {rows[0]!r}"
        )
    return pairs.astype(np.int64).reshape(-1, 2)
