"""Samplers of other libraries behind one interface.

All do the same work: two hops of at most 20 neighbours without replacement, de-duplicated and
relabelled blocks. Each gets the graph in its preferred format before timing starts. A peer that is
not installed raises `AbsentError`; `requirements-peers.txt` lists them.
"""

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors
from vesper.graph.sampling.expand import below

Sample = Callable[[NDArray[np.int64], int], int]
"""Function of roots and number of threads; returns the number of sampled edges."""


class AbsentError(Exception):
    """The peer cannot run here; the message says why."""


def dgl_int64(graph: Graph, fan_outs: list[int]) -> Sample:
    """DGL's NeighborSampler with its defaults: int64, sampling and relabelling fused."""
    return _dgl(graph, fan_outs, np.dtype(np.int64), fused=True)


def dgl_int32(graph: Graph, fan_outs: list[int]) -> Sample:
    """The same on int32, not fused: when fused, DGL 1.1.3 samples fewer nodes with every call."""
    return _dgl(graph, fan_outs, np.dtype(np.int32), fused=False)


def _dgl(graph: Graph, fan_outs: list[int], dtype: np.dtype[Any], *, fused: bool) -> Sample:
    if find_spec("dgl") is None:
        raise AbsentError("dgl is not installed")
    os.environ.setdefault(
        "DGLBACKEND", "pytorch"
    )  # otherwise it writes a file into the home folder
    library = import_module("dgl")
    arrays = graph.indptr, graph.neighbors, np.empty(0)
    whole = library.graph(("csc", tuple(torch.from_numpy(a.astype(dtype)) for a in arrays)))
    sampler = library.dataloading.NeighborSampler(fan_outs, fused=fused)

    def sample(roots: NDArray[np.int64], threads: int) -> int:
        library.utils.set_num_threads(threads)
        _, _, blocks = sampler.sample(whole, torch.from_numpy(roots.astype(dtype)))
        return sum(int(block.num_edges()) for block in blocks)

    return sample


def pyg(graph: Graph, fan_outs: list[int]) -> Sample:
    """PyG's NeighborLoader, called batch by batch without worker processes.

    It samples a little less: a node reached by an earlier hop is not sampled again by a later one.
    """
    if find_spec("torch_geometric") is None:
        raise AbsentError("torch_geometric is not installed")
    if find_spec("torch_sparse") is None and find_spec("pyg_lib") is None:
        raise AbsentError(
            "torch_geometric samples with torch-sparse or pyg-lib; neither is installed"
        )
    data = import_module("torch_geometric.data")
    loader = import_module("torch_geometric.loader")
    receivers = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))  # (2 * num_edges,)
    edge_index = torch.empty(2, len(receivers), dtype=torch.int64)
    edge_index[0], edge_index[1] = (torch.from_numpy(a) for a in (graph.neighbors, receivers))
    whole = data.Data(edge_index=edge_index, num_nodes=graph.num_nodes)
    engine = loader.NeighborLoader(whole, num_neighbors=fan_outs, is_sorted=True)

    def sample(roots: NDArray[np.int64], threads: int) -> int:
        torch.set_num_threads(threads)
        return int(engine(torch.from_numpy(roots)).edge_index.shape[1])

    return sample


def plain_python(graph: Graph, fan_outs: list[int]) -> Sample:
    """NumPy's `choice` row by row and a dictionary: an obvious first version."""
    generator = np.random.default_rng(0)

    def sample(roots: NDArray[np.int64], threads: int) -> int:
        places = {int(node): place for place, node in enumerate(roots)}
        num_edges = 0
        for fan_out in fan_outs:
            indices = []
            for node in list(places):
                row = graph.neighbors[graph.indptr[node] : graph.indptr[node + 1]]
                if len(row) > fan_out:
                    row = row[generator.choice(len(row), fan_out, replace=False)]
                indices += [places.setdefault(int(u), len(places)) for u in row]
            num_edges += len(indices)
        return num_edges

    return sample


def plain_numba(graph: Graph, fan_outs: list[int]) -> Sample:
    """One compiled loop with a stamp per node: an obvious second version. One thread."""
    counters = count(step=1 << 40)  # each hop reads its own range of the stream
    places = np.full(graph.num_nodes, -1, dtype=np.int32)

    def sample(roots: NDArray[np.int64], threads: int) -> int:
        nodes, num_edges = roots, 0
        for fan_out in fan_outs:
            nodes, indices = _plain_hop(
                graph.indptr, graph.neighbors, nodes, fan_out, np.uint64(next(counters)), places
            )
            num_edges += len(indices)
        places[nodes] = -1
        return num_edges

    return sample


@njit(cache=True)
def _plain_hop(
    graph_indptr: NDArray[np.int64],
    neighbors: Neighbors,
    receivers: NDArray[np.int64],
    fan_out: int,
    counter: np.uint64,
    places: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    nodes = np.empty(len(receivers) * (fan_out + 1), dtype=np.int64)
    indices = np.empty(len(receivers) * fan_out, dtype=np.int32)
    positions = np.empty(fan_out, dtype=np.int64)
    num_nodes = num_edges = 0
    for node in receivers:
        nodes[num_nodes] = node
        places[node] = num_nodes
        num_nodes += 1
    for node in receivers:
        start, degree = graph_indptr[node], graph_indptr[node + 1] - graph_indptr[node]
        row = positions[: min(degree, fan_out)]
        for k in range(len(row)):
            row[k] = k
            if degree > fan_out:
                top = degree - fan_out + k
                counter, drawn = below(counter, np.uint64(top + 1))
                row[k] = drawn
                for j in range(k):
                    if row[j] == np.int64(drawn):
                        row[k] = top
        for k in range(len(row)):
            row[k] = neighbors[start + row[k]]
        for neighbor in row:
            if places[neighbor] < 0:
                places[neighbor] = num_nodes
                nodes[num_nodes] = neighbor
                num_nodes += 1
            indices[num_edges] = places[neighbor]
            num_edges += 1
    return nodes[:num_nodes], indices[:num_edges]


PEERS: dict[str, tuple[Callable[[Graph, list[int]], Sample], tuple[int, ...]]] = {
    "DGL NeighborSampler, int64": (dgl_int64, (1, 2)),
    "DGL NeighborSampler, int32": (dgl_int32, (1, 2)),
    "PyG NeighborLoader": (pyg, (1,)),
    "plain Numba loop": (plain_numba, (1,)),
    "plain Python + NumPy": (plain_python, (1,)),
}
"""Peers to measure, with their numbers of threads."""
