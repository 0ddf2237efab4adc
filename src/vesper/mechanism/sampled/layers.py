"""Message passing on sampled subgraphs (the paper's Algorithm 1, lines 1 to 7).

    gathered[v] = self_weight(d_v) row[v] + sum over u in N(v) of edge_weight(d_u, d_v) row[u]

N(v) is the sampled neighbourhood and d_v = min(degree in the graph, max_degree) its size, as in the
paper ("overload the notation N(v)"). Rows and gradients go in and out; links never leave.

The sensitivities that the paper's plans are calibrated with, *claimed* unless stated otherwise:

| number | what it is |
| --- | --- |
| `layer_sensitivity` | the paper's bound of one layer, operator norm 1: sqrt 2, or eta(D_min) |
| `vfgnn_sensitivity` | of L layers with noise on the output only, proved or as published |

Noise of these plans is a floating-point Gaussian from a seed, for simulation:

    perturbed = rows + N(0, noise_std^2 I)

Certified plans use exact noise instead (`mechanism.noise.noise_source`).
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.graph.sampling.subgraph import Block, graph_degrees
from vesper.mechanism.reference.gcn import GcnAggregation
from vesper.mechanism.reference.gcn_truncated import TruncatedGcn
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.linear import Degrees, DegreeWeights
from vesper.mechanism.reference.vfgnn_bound import VfgnnOutput
from vesper.mechanism.sampled.link_sums import Links, weighted_sum
from vesper.mechanism.sampled.shared_draw import draw_for
from vesper.parallel.compile_cache import cached_njit
from vesper.privacy.accounting.safe_numbers import expect_positive

Nodes = NDArray[np.int64]
Aggregator = Literal["gin", "gcn", "truncated-gcn"]


def degree_weights_of(aggregator: Aggregator, *, min_degree: int) -> DegreeWeights:
    """Return the weights of an aggregator; only `truncated-gcn` uses `min_degree`."""
    if aggregator == "gin":
        return GinAggregation()
    if aggregator == "gcn":
        return GcnAggregation(min_degree=0)
    return TruncatedGcn(min_degree=min_degree)


class SampledLayer:
    """One layer of one batch: rows of senders to rows of receivers, which are the first senders."""

    def __init__(self, block: Block, degrees: Degrees, aggregation: DegreeWeights) -> None:
        self._links = _links(block, degrees, aggregation)
        self.num_receivers = block.num_receivers
        self.branch_receivers: Tensor | None = None
        """Receivers whose degree is too low to aggregate; None: every receiver aggregates."""
        if isinstance(aggregation, TruncatedGcn):
            low = aggregation.branch_weight(degrees[: block.num_receivers]) > 0
            self.branch_receivers = torch.from_numpy(np.flatnonzero(low))  # (num_blocked,)

    def gather(self, rows: Tensor) -> Tensor:
        """Weight and sum: (num_senders, width) to (num_receivers, width)."""
        return weighted_sum(rows, self._links)


class SampledBatch:
    """The sampled neighbourhoods of one batch of roots."""

    def __init__(self, nodes: Nodes, layers: tuple[SampledLayer, ...], num_roots: int) -> None:
        self.nodes = nodes
        """(num_nodes,) nodes whose rows the first layer reads, roots first; they reveal edges."""
        self.layers, self.num_roots = layers, num_roots


class SampledGraph:
    """A graph that samples batches.

    Args:
        graph: the private graph.
        aggregator: how neighbours are weighted.
        num_layers: L.
        max_degree: D, most neighbours per node and layer.
        min_degree: D_min, for `truncated-gcn`.
        seed: seed of the sampling.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        aggregator: Aggregator,
        num_layers: int,
        max_degree: int,
        min_degree: int,
        seed: int,
    ) -> None:
        self._graph, self._max_degree = graph, max_degree
        self._aggregation = degree_weights_of(aggregator, min_degree=min_degree)
        self._sampler = Sampler(
            graph,
            num_layers=num_layers,
            max_degree=max_degree,
            seed=seed,
            draw=draw_for(graph, max_degree=max_degree),
        )

    def sample(self, roots: Nodes, *, step: int) -> SampledBatch:
        """Sample the batch of one step; other steps draw other neighbours."""
        subgraph = self._sampler.sample(roots, step=step)
        degrees = np.minimum(graph_degrees(self._graph, subgraph.nodes), self._max_degree)
        layers = (SampledLayer(block, degrees, self._aggregation) for block in subgraph.layers)
        return SampledBatch(subgraph.nodes, tuple(layers), len(roots))


def _links(block: Block, degrees: Degrees, aggregation: DegreeWeights) -> Links:
    """Links of a layer with weights, including a link from each receiver to itself."""
    indptr = np.add(block.indptr, np.arange(len(block.indptr)), dtype=np.int32)
    indices = np.empty(indptr[-1], dtype=np.int32)
    _with_own(block.indptr, block.indices, indices)
    if isinstance(aggregation, GinAggregation) and aggregation.own_scale == 1:
        return Links(indptr, indices, None, block.num_senders)
    own = aggregation.self_weight(degrees[: block.num_receivers]).astype(np.float32)
    # A weight for each pair of degrees that occur, at most (max_degree + 1)^2 of them.
    occurs = np.bincount(degrees) > 0
    distinct = np.flatnonzero(occurs)
    ranks = (np.cumsum(occurs, dtype=np.int32) - 1)[degrees]  # (num_nodes,), into `distinct`
    pair_weights = aggregation.edge_weight(distinct, distinct[:, None]).astype(np.float32)
    weights = np.empty(len(indices), dtype=np.float32)
    _weigh(indptr, indices, own, ranks, pair_weights, weights)
    return Links(indptr, indices, weights, block.num_senders)


@cached_njit
def _with_own(
    indptr: NDArray[np.int32], neighbors: NDArray[np.int32], indices: NDArray[np.int32]
) -> None:
    """Copy rows with the receiver itself at the front of each."""
    at = 0
    for receiver in range(len(indptr) - 1):
        indices[at] = receiver
        at += 1
        for link in range(indptr[receiver], indptr[receiver + 1]):
            indices[at] = neighbors[link]
            at += 1


@cached_njit
def _weigh(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    own: NDArray[np.float32],
    ranks: NDArray[np.int32],
    pair_weights: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> None:
    """Look up the weight of each link: `own` for the first of a row, by degrees for the others.

    Args:
        indptr: (num_receivers + 1,) rows of the links.
        indices: (num_links,) senders, each receiver first in its row.
        own: (num_receivers,) weight of the own row.
        ranks: (num_nodes,) rank of each node's degree among those that occur.
        pair_weights: weights by ranks, (degrees of receivers, degrees of senders).
        weights: (num_links,) output.
    """
    for receiver in range(len(indptr) - 1):
        first = indptr[receiver]
        by_sender = pair_weights[ranks[receiver]]
        for link in range(first, indptr[receiver + 1]):
            weights[link] = by_sender[ranks[indices[link]]]
        weights[first] = own[receiver]


def layer_sensitivity(aggregator: Aggregator, *, min_degree: int, max_degree: int) -> float:
    """How far one edge moves one layer according to the paper.

    Raises:
        InputError: the paper has no bound for the aggregator, or no node could ever aggregate.
    """
    if aggregator == "gin":
        return GinAggregation().claimed_edge_sensitivity()
    if aggregator == "gcn":
        raise InputError("aggregator: the paper bounds GCN only when it is truncated")
    if min_degree > max_degree:
        raise InputError(
            f"min_degree: expected at most max_degree={max_degree}, got {min_degree}; "
            "otherwise no node has enough neighbours to aggregate them"
        )
    return TruncatedGcn(min_degree=min_degree).claimed_edge_sensitivity()


def vfgnn_sensitivity(
    aggregator: Aggregator, *, max_degree: int, num_layers: int, norm: float, as_published: bool
) -> float:
    """How far one edge moves the output: claim S-VFGNN, or as published."""
    output = VfgnnOutput(
        degree_weights_of(aggregator, min_degree=1),
        max_degree=max_degree,
        num_layers=num_layers,
        norm=norm,
    )
    return output.claimed_edge_sensitivity() if as_published else output.edge_sensitivity()


class LayerNoise:
    """Gaussian noise of positive size; callers without noise use None in its place.

    Args:
        noise_std: standard deviation, above 0 and finite.
        seed: seed of the noise.
    """

    def __init__(self, *, noise_std: float, seed: int) -> None:
        expect_positive("noise_std", noise_std)
        self.noise_std = noise_std
        self.generator = torch.Generator().manual_seed(seed)

    def perturb(self, rows: Tensor) -> Tensor:
        """Add fresh noise to every entry; gradients pass unchanged."""
        noise = torch.empty_like(rows, requires_grad=False)
        return rows + noise.normal_(0.0, self.noise_std, generator=self.generator)
