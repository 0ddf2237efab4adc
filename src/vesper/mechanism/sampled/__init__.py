"""Layers of the paper's plan: sampled, with gradients through edges; nothing is certified.

In reading order:

    layers        sampled message passing, its claimed sensitivities and its noise
    link_sums     a sparse matrix times rows, with the gradient
    shared_draw   sampling by the workers of an engine
"""

from vesper.mechanism.sampled.layers import (
    Aggregator,
    LayerNoise,
    SampledBatch,
    SampledGraph,
    SampledLayer,
    layer_sensitivity,
    vfgnn_sensitivity,
)
from vesper.mechanism.sampled.link_sums import Links, links_of, weighted_sum

__all__ = [
    "Aggregator",
    "LayerNoise",
    "Links",
    "SampledBatch",
    "SampledGraph",
    "SampledLayer",
    "layer_sensitivity",
    "links_of",
    "vfgnn_sensitivity",
    "weighted_sum",
]
