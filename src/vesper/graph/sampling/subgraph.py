"""Result of the sampler: nodes and one block of rows per layer, ready for `embedding_bag`.

    h = encodings[subgraph.nodes]                                     # h^(0)
    for block in subgraph.layers:                                     # l = 1 .. L
        sums = embedding_bag(block.indices, h, block.indptr, mode="sum", include_last_offset=True)
        h = sums + h[: block.num_receivers]                           # h^(l)
                                                                      # one row per root, in order

`sample_rows` draws rows of a sample from a part of the graph, for workers that hold only that part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph, Neighbors
from vesper.graph.sampling.expand import ROWS_A_PIECE, draw_rows, measure_rows
from vesper.parallel.pool import run


def sample_rows(
    graph_indptr: NDArray[np.int64],
    neighbors: Neighbors,
    first: int,
    receivers: NDArray[np.int64],
    *,
    max_degree: int,
    key: np.uint64,
    num_nodes: int,
) -> tuple[NDArray[np.int64], Neighbors]:
    """Draw rows of a part of a graph exactly as a `Sampler` of the whole graph would.

    Args:
        graph_indptr: where each row of the part starts in `neighbors`.
        neighbors: neighbours in the part, as global node numbers.
        first: node number of the first row of the part.
        receivers: nodes of the part whose rows to draw.
        max_degree: maximum number of neighbours per row.
        key: key of the hop, from `hop_key`.
        num_nodes: number of nodes of the whole graph.

    Returns:
        The indptr of the sample, and the drawn node numbers.
    """
    starts, degrees = np.empty_like(receivers), np.empty_like(receivers)  # (num_receivers,)
    indptr = np.empty(len(receivers) + 1, dtype=np.int64)
    longest = measure_rows(graph_indptr, receivers - first, max_degree, starts, degrees, indptr)
    samples = np.empty(int(indptr[-1]), dtype=neighbors.dtype)
    run(
        draw_rows,
        neighbors,
        receivers,
        starts,
        degrees,
        indptr,
        key,
        samples,
        np.zeros((1, longest // 64 + 1), dtype=np.uint64),
        np.zeros((1, (num_nodes + 63) // 64), dtype=np.uint64),
        num_pieces=-(-len(receivers) // ROWS_A_PIECE),
        num_threads=1,
    )
    return indptr, samples


@dataclass(frozen=True, eq=False)
class Block:
    """Sampled rows of one layer, whose receivers are the first of its senders.

    Senders are `subgraph.nodes[:num_senders]`, receivers `subgraph.nodes[:num_receivers]`; the
    sampled neighbours of receiver k are the senders indices[indptr[k] : indptr[k + 1]].

    Args:
        indptr: (num_receivers + 1,) int32.
        indices: (num_sampled_edges,) int32, places in `subgraph.nodes`.
        num_senders: number of nodes that the layer reads.
    """

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    num_senders: int

    @property
    def num_receivers(self) -> int:
        """Number of nodes that the layer writes."""
        return len(self.indptr) - 1

    @property
    def degrees(self) -> NDArray[np.int32]:
        """Sampled degrees, (num_receivers,): min(max_degree, degree in the graph)."""
        return np.diff(self.indptr)


@dataclass(frozen=True, eq=False)
class Subgraph:
    """The union of the sampled trees of all roots, G^(L)_B in the paper.

    Args:
        nodes: (num_nodes,) int64 node numbers of the graph: the roots as given, then the nodes
            first reached by hop 1 in ascending order, then those first reached by hop 2, ...
        layers: L blocks in the order of the forward pass: layers[0] is nearest the input and reads
            all nodes, layers[-1] writes the roots.
    """

    nodes: NDArray[np.int64]
    layers: tuple[Block, ...]

    @property
    def roots(self) -> NDArray[np.int64]:
        """The (num_roots,) roots, as given."""
        return self.nodes[: self.layers[-1].num_receivers]

    @property
    def num_sampled_edges(self) -> int:
        """Number of sampled edges in all layers."""
        return sum(len(block.indices) for block in self.layers)


def graph_degrees(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the (len(nodes),) degrees in the whole graph, which GCN weights need.

    >>> graph_degrees(Graph.from_edges(3, [(0, 1), (0, 2)]), np.array([0, 2])).tolist()
    [2, 1]
    """
    return graph.indptr[nodes + 1] - graph.indptr[nodes]
