"""What the sampler hands over: nodes and one block of rows a layer, ready for `embedding_bag`.

h = encodings[subgraph.nodes]                                     # h^(0)
for block in subgraph.layers:                                     # l = 1 .. L
    sums = embedding_bag(block.indices, h, block.indptr, mode="sum", include_last_offset=True)
    h = sums + h[: block.num_receivers]                           # h^(l)
                                                                  # one row a root, in order
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Block:
    """Sampled rows of one layer: receivers are the first of the senders.

    Senders are `subgraph.nodes[:num_senders]`, receivers `subgraph.nodes[:num_receivers]`; the
    sampled neighbours of receiver k are the senders indices[indptr[k] : indptr[k + 1]].

    Args:
        indptr: (num_receivers + 1,) int32.
        indices: (num_sampled_edges,) int32, places in `subgraph.nodes`.
        num_senders: how many nodes the layer reads.
    """

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    num_senders: int

    @property
    def num_receivers(self) -> int:
        """How many nodes the layer writes."""
        return len(self.indptr) - 1

    @property
    def degrees(self) -> NDArray[np.int32]:
        """(num_receivers,) sampled degrees, min(max_degree, degree in the graph)."""
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
        """(num_roots,) the roots, as given."""
        return self.nodes[: self.layers[-1].num_receivers]

    @property
    def num_sampled_edges(self) -> int:
        """Sampled edges of all layers together."""
        return sum(len(block.indices) for block in self.layers)


def graph_degrees(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(len(nodes),) true degrees, however few neighbours were sampled: GCN weights need them.

    >>> graph_degrees(Graph.from_edges(3, [(0, 1), (0, 2)]), np.array([0, 2])).tolist()
    [2, 1]
    """
    return graph.indptr[nodes + 1] - graph.indptr[nodes]
