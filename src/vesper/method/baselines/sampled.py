"""Base of methods on sampled neighbourhoods: Algorithm 3 of the paper, gradients through edges.

    embed(nodes):  sample the nodes' neighbourhoods; extractor(encodings of all sampled nodes)

Nothing here is certified: each method defines which graph it samples from and what that guarantees.
Validation and test nodes are embedded like training nodes, with their own noise and samples, which
the paper does not count.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.features import Features
from vesper.graph.graph import Graph
from vesper.mechanism.door import Door
from vesper.mechanism.sampled import Aggregator, LayerNoise, SampledGraph
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.options import encoder_shape_of
from vesper.method.settings import Config
from vesper.model.decoders import ConcatDecoder, Decoder, GruDecoder
from vesper.model.encoders import make_encoder, takes_sparse_rows
from vesper.model.encoding_cache import EncodingCache, encode_in_parts
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.message_passing import LayerSpec, PerturbedMessagePassing, VfgnnExtractor
from vesper.model.sparse_inputs import SparseInputs, inputs_of
from vesper.model.standardize import StandardizingDecoder
from vesper.party.representation import NO_NODES, Nodes, Representation

Extractor = PerturbedMessagePassing | VfgnnExtractor

SEEDS_PER_PART = 1 << 40
"""Distance of the seeds of noise and sampling from those of weights and masks."""

SAMPLED_DEFAULTS: Mapping[str, object] = {
    "hops": 2,
    "max_degree": 50,
    "epochs": 15,
    "patience": 5,
    "learning_rate": 0.003,
    "label_messages": False,  # these methods share no labels
}


class SampledRepresentation:
    """An extractor on sampled neighbourhoods, in one stage."""

    is_random = True
    """Each embedding has its own sample."""

    def __init__(
        self, extractor: Extractor, *, inputs: Inputs | SparseInputs, graph: SampledGraph
    ) -> None:
        self._extractor, self._inputs, self._graph = extractor, inputs, graph
        self._encodings = EncodingCache(extractor.encode, weights=extractor, inputs=inputs)
        self._step = 0

    @property
    def module(self) -> Extractor:
        """Encoder and layers."""
        return self._extractor

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Do nothing: these methods send no labels."""

    def begin_stage(self, stage: int) -> None:
        """Do nothing: the only stage needs no preparation."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Embed the nodes from a new sample: (B, width, depth)."""
        batch = self._graph.sample(nodes, step=self._step)
        self._step += 1
        if not training:
            return self._extractor.propagate(self._encodings.rows(batch.nodes), batch)
        self._encodings.clear()  # weights are about to change, and memory is scarce
        rows = encode_in_parts(self._extractor.encode, inputs=self._inputs, nodes=batch.nodes)
        return self._extractor.propagate(rows, batch)

    def select_stage(self, stage: int) -> None:
        """Do nothing: there is one stage."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the number of samples drawn so far: each has its own seed."""
        return {"step": np.array(self._step)}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Continue with the next sample."""
        self._step = int(arrays["step"])

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return how features are scaled."""
        return {**self._inputs.scaling.fitted_arrays()}

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Scale features as on the training graph."""
        self._inputs.scaling.load_fitted(arrays)


class SampledMethod(ABC):
    """Encoder and layers, trained together; subclasses define the graph and the noise."""

    name: str
    defaults: Mapping[str, object] = SAMPLED_DEFAULTS

    @abstractmethod
    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Compute the noise from the budget."""

    @abstractmethod
    def aggregator(self, config: Config) -> Aggregator:
        """Return how neighbours are weighted."""

    @abstractmethod
    def graph(self, config: Config, door: Door) -> Graph:
        """Return the graph to sample from."""

    def noise(self, config: Config, noise_plan: NoisePlan) -> LayerNoise | None:
        """Return the noise of the layers; None only if the plan has none."""
        if noise_plan.plan == "none":
            return None
        return LayerNoise(noise_std=noise_plan.noise_stds[0], seed=config.run.seed + SEEDS_PER_PART)

    def extractor(self, config: Config, encoder: nn.Module, layers: LayerSpec) -> Extractor:
        """Make the extractor: message passing with noise on every layer."""
        truncated = self.aggregator(config) == "truncated-gcn"
        return PerturbedMessagePassing(encoder, layers, truncated=truncated)

    def depth(self, config: Config) -> int:
        """Return how many embeddings of a node cross: one per layer."""
        return num_layers_of(config)

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """Return 1: all layers are trained together."""
        return 1

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make encoder and layers, on sampled neighbourhoods."""
        run, privacy = config.run, config.privacy
        scaling = FeatureScaling(features, raw=run.features == "raw")
        shape = encoder_shape_of(config, sizes, num_inputs=scaling.width)
        encoder = make_encoder(run.encoder, shape)
        inputs = inputs_of(features, scaling, sparse=takes_sparse_rows(encoder))
        layers = LayerSpec(
            width=run.width,
            num_layers=num_layers_of(config),
            exact=privacy.spectral_norm == "exact",
            bounded=privacy.spectral_norm != "none",
            noise=self.noise(config, noise_plan),
            seed=run.seed,
        )
        extractor = self.extractor(config, encoder, layers)
        sampled = SampledGraph(
            self.graph(config, door),
            aggregator=self.aggregator(config),
            num_layers=layers.num_layers,
            max_degree=privacy.max_degree,
            min_degree=privacy.min_degree,
            seed=run.seed + 2 * SEEDS_PER_PART,
        )
        return SampledRepresentation(extractor, inputs=inputs, graph=sampled)

    def make_decoder(self, config: Config, sizes: PublicSizes) -> Decoder:
        """Make the decoder: CONCAT or GRU over standardised embeddings, or over raw ones."""
        run, depth = config.run, self.depth(config)
        make = GruDecoder if run.decoder == "gru" else ConcatDecoder
        decoder: Decoder = make(
            embedding_width=run.width,
            depth=depth,
            width=run.width,
            outputs=sizes.num_classes,
            seed=run.seed + 1,
        )
        if run.decoder_inputs == "raw":
            return decoder
        return StandardizingDecoder(decoder, embedding_width=run.width, depth=depth)


def num_layers_of(config: Config) -> int:
    """Return L: as set, or 2, which the paper found best."""
    return config.privacy.hops or 2
