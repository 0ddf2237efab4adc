"""Methods on sampled neighbourhoods: Algorithm 3 of the paper, with gradients through the edges.

    embed(nodes):  sample the nodes' neighbourhoods; extractor(inputs of all sampled nodes)

Nothing here is certified. Validation and test nodes take the same way as training nodes, with
noise and sampling of their own, which the paper does not count.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.graph import Graph
from vesper.mechanism.sampled.layers import Aggregator, SampledGraph
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.method.method import Promise, Sizes
from vesper.method.settings import Config
from vesper.model.decoder import ConcatDecoder, Decoder
from vesper.model.encoders import make_encoder
from vesper.model.gru_decoder import GruDecoder
from vesper.model.scaling import NodeInputs
from vesper.model.standardize import StandardizingDecoder
from vesper.party.representation import Nodes

ROWS = 1 << 14
"""Nodes at a time when all are scaled."""

SEEDS_A_PART = 1 << 40
"""Seeds of noise and sampling are this far from those of weights and masks."""

SAMPLED_DEFAULTS: Mapping[str, object] = {
    "hops": 2,
    "max_degree": 50,
    "epochs": 15,
    "patience": 5,
    "learning_rate": 0.003,
    "label_messages": False,  # nobody sends a label here
}


class SampledRepresentation:
    """An extractor on sampled neighbourhoods, in one stage."""

    def __init__(self, extractor: nn.Module, *, inputs: NodeInputs, graph: SampledGraph) -> None:
        self._extractor, self._inputs, self._graph = extractor, inputs, graph
        self._step = 0

    @property
    def module(self) -> nn.Module:
        """Encoder and layers."""
        return self._extractor

    def hear(self, nodes: Nodes, voices: NDArray[np.float32]) -> None:
        """Nobody speaks in this plan."""

    def begin_stage(self, stage: int) -> None:
        """Nothing comes before the only stage."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Embeddings of the nodes from a fresh sample: (B, width, depth)."""
        batch = self._graph.sample(nodes, step=self._step)
        self._step += 1
        inputs = self._inputs.of(batch.nodes)
        embeddings: Tensor = self._extractor(inputs, batch)
        return embeddings


def encoder_of(config: Config, sizes: Sizes, *, num_inputs: int) -> nn.Module:
    """The encoder that the settings ask for."""
    run = config.run
    return make_encoder(
        run.encoder,
        num_inputs=num_inputs,
        num_features=sizes.num_features,
        steps=run.steps,
        width=run.width,
        dropout=run.dropout,
        seed=run.seed + 2,
    )


def num_layers_of(config: Config) -> int:
    """L: as asked for, or 2, which the paper found best."""
    return config.privacy.hops or 2


def noise_of(config: Config, promise: Promise) -> LayerNoise | None:
    """The promised noise; none only where the promise is without."""
    if promise.plan == "none":
        return None
    return LayerNoise(noise_std=promise.noise_stds[0], seed=config.run.seed + SEEDS_A_PART)


def sampled_graph_of(config: Config, graph: Graph, *, aggregator: Aggregator) -> SampledGraph:
    """The graph to sample from, as the settings ask."""
    return SampledGraph(
        graph,
        aggregator=aggregator,
        num_layers=num_layers_of(config),
        max_degree=config.privacy.max_degree,
        min_degree=config.privacy.min_degree,
        seed=config.run.seed + 2 * SEEDS_A_PART,
    )


def decoder_of(config: Config, sizes: Sizes, *, depth: int) -> Decoder:
    """The decoder that the settings ask for, on standardised embeddings."""
    run, outputs = config.run, sizes.num_classes
    widths = {"embedding_width": run.width, "width": run.width, "outputs": outputs}
    decoder: Decoder = (
        GruDecoder(**widths, seed=run.seed + 1)
        if run.decoder == "gru"
        else ConcatDecoder(**widths, depth=depth, seed=run.seed + 1)
    )
    return StandardizingDecoder(decoder, embedding_width=run.width, depth=depth)
