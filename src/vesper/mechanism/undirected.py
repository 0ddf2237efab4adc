"""Is it the kind of graph that R-SUM speaks of? Looked at before a charged door opens.

    every row strictly ascending, in range, without its own node
    sum over u < v in row u of mix(u, v)  =  sum over u > v in row u of mix(v, u)   (mod 2^64)

`mix` is keyed with fresh random bits, so arrays that are not symmetric pass with probability about
2^-64. A repeated or one-way neighbour would move a row by more, or another row, than the claim
says. One pass over the neighbours.
"""

import secrets

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.compiled import compiled
from vesper.graph.graph import Graph, Neighbors


def refuse_directed(graph: Graph) -> None:
    """Refuse arrays that are no undirected graph without repeats and self-loops."""
    indptr, neighbors = graph.indptr, graph.neighbors
    if (
        indptr[0] != 0
        or indptr[-1] != len(neighbors)
        or bool((np.diff(indptr) < 0).any())
        or (len(neighbors) and not 0 <= neighbors.min() <= neighbors.max() < graph.num_nodes)
    ):
        raise InputError("Expected a graph in CSR form, got row starts or neighbours out of range.")
    bad, balance = _scan(
        np.ascontiguousarray(indptr),
        np.ascontiguousarray(neighbors),
        np.uint64(secrets.randbits(64)),
    )
    if bad >= 0 or balance != 0:
        found = "one-way edges" if bad < 0 else f"row {bad} repeats a neighbour or is not ascending"
        raise InputError(f"Expected an undirected graph without repeats or loops, got {found}.")


@compiled
def _scan(indptr: NDArray[np.int64], neighbors: Neighbors, key: np.uint64) -> tuple[int, np.uint64]:
    """Give the first bad row, or -1, and the balance of both directions."""
    balance = np.uint64(0)
    for u in range(len(indptr) - 1):
        before = -1
        for k in range(indptr[u], indptr[u + 1]):
            v = neighbors[k]
            if v <= before or v == u:
                return u, balance
            before = v
            mixed = _mix(_mix(np.uint64(min(u, v)) ^ key) + np.uint64(max(u, v)))
            balance = balance + mixed if u < v else balance - mixed
    return -1, balance


@compiled
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
