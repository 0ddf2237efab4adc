"""What GIN, GCN and the paper's plan share: sampled layers, all of whose outputs cross.

With a finite epsilon there is noise, without there is none, and nothing else differs: that is why
the paper's plan at epsilon = inf is the non-private network, bit for bit.
"""

from collections.abc import Mapping
from typing import Literal

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.sampled.layers import Aggregator
from vesper.method.budgeting import unprotected
from vesper.method.method import Promise, Sizes
from vesper.method.sampled import (
    SAMPLED_DEFAULTS,
    SampledRepresentation,
    decoder_of,
    encoder_of,
    noise_of,
    num_layers_of,
    sampled_graph_of,
)
from vesper.method.settings import Config
from vesper.model.decoder import Decoder
from vesper.model.pmp import PerturbedMessagePassing
from vesper.model.scaling import Inputs, Scaling
from vesper.party.representation import Representation


class GnnMethod:
    """A message-passing network without privacy; no noise, whatever epsilon is asked for."""

    defaults: Mapping[str, object] = SAMPLED_DEFAULTS

    def __init__(self, name: str, *, aggregator: Literal["gin", "gcn"]) -> None:
        self.name, self.base = name, aggregator

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """Promise nothing."""
        return unprotected(num_layers_of(config))

    def aggregator(self, config: Config) -> Aggregator:
        """How neighbours are weighed."""
        return self.base

    def stages(self, config: Config, sizes: Sizes) -> int:
        """All layers are trained together."""
        return 1

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Encoder and layers, on the graph itself."""
        run, aggregator = config.run, self.aggregator(config)
        inputs = Inputs(features, Scaling(features))
        extractor = PerturbedMessagePassing(
            encoder_of(config, sizes, num_inputs=inputs.width),
            width=run.width,
            num_layers=num_layers_of(config),
            truncated=aggregator == "truncated-gcn",
            exact=config.privacy.spectral_norm == "exact",
            noise=noise_of(config, self.promise(config, sizes)),
            seed=run.seed,
        )
        graph = sampled_graph_of(config, door.uncertified_graph(), aggregator=aggregator)
        return SampledRepresentation(extractor, inputs=inputs, graph=graph)

    def label_side(self, config: Config, sizes: Sizes) -> Decoder:
        """CONCAT or GRU over the layers."""
        return decoder_of(config, sizes, depth=num_layers_of(config))
