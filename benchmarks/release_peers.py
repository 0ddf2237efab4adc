"""Neighbour sums of other libraries behind one interface; none of them adds noise.

Each gets graph and messages in its preferred format before timing starts.
"""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from benchmarks.graph_peers import AbsentError
from numba import njit
from numpy.typing import NDArray
from torch.nn import functional as F

from vesper.graph.graph import Graph, Neighbors

Sums = NDArray[np.int32] | NDArray[np.float32]
Sum = Callable[[], Sums]
"""Function that returns the neighbour sums of all nodes: (num_nodes, width)."""

Messages = NDArray[np.int8]


def embedding_bag(graph: Graph, messages: Messages) -> Sum:
    """`F.embedding_bag`, the fastest sum in PyTorch: float32, int32 indices."""
    weights = torch.from_numpy(messages.astype(np.float32))
    indices, offsets = (torch.from_numpy(part) for part in _int32(graph))

    def run() -> Sums:
        bags = F.embedding_bag(indices, weights, offsets, mode="sum", include_last_offset=True)
        sums: NDArray[np.float32] = bags.numpy()
        return sums

    return run


def torch_csr(graph: Graph, messages: Messages) -> Sum:
    """A sparse CSR matrix of ones times float32 messages."""
    dense = torch.from_numpy(messages.astype(np.float32))
    indices, offsets = (torch.from_numpy(part) for part in _int32(graph))
    ones = torch.ones(len(indices))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse CSR warns that it is in beta
        matrix = torch.sparse_csr_tensor(
            offsets, indices, ones, size=(graph.num_nodes, graph.num_nodes)
        )

    def run() -> Sums:
        sums: NDArray[np.float32] = (matrix @ dense).numpy()
        return sums

    return run


def plain_numba(graph: Graph, messages: Messages) -> Sum:
    """Three nested loops over int8, compiled: an obvious first version. One thread."""

    def run() -> Sums:
        sums = np.zeros(messages.shape, dtype=np.int32)
        _plain_sum(graph.indptr, graph.neighbors, messages, sums)
        return sums

    return run


@njit(cache=True)
def _plain_sum(
    indptr: NDArray[np.int64], neighbors: Neighbors, messages: Messages, sums: NDArray[np.int32]
) -> None:
    for node in range(len(indptr) - 1):
        for at in range(indptr[node], indptr[node + 1]):
            for column in range(messages.shape[1]):
                sums[node, column] += messages[neighbors[at], column]


def _int32(graph: Graph) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    if len(graph.neighbors) > np.iinfo(np.int32).max:
        raise AbsentError("more edges than 32 bits can count")
    neighbors = np.array(graph.neighbors, dtype=np.int32)  # torch requires a writable array
    return neighbors, graph.indptr.astype(np.int32)
