"""Learn on a graph of noisy edges: it is public once it is paid for, so gradients may pass through.

door.perturb(..)  once;   then the non-private network of `gcn` on what came out
"""

import math
from collections.abc import Callable, Mapping

from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.perturbed_graph import Perturbation
from vesper.method.budgeting import unprotected
from vesper.method.method import Promise, Sizes
from vesper.method.sampled import (
    SAMPLED_DEFAULTS,
    SampledRepresentation,
    decoder_of,
    encoder_of,
    num_layers_of,
    sampled_graph_of,
)
from vesper.method.settings import Config
from vesper.model.decoder import Decoder
from vesper.model.pmp import PerturbedMessagePassing
from vesper.model.scaling import Inputs, Scaling
from vesper.party.representation import Representation


class NoisyEdgesMethod:
    """Edges only through `Door.perturb`, once.

    Args:
        name: of the method.
        perturbation: from epsilon to the way edges are made noisy.
    """

    defaults: Mapping[str, object] = SAMPLED_DEFAULTS

    def __init__(self, name: str, perturbation: Callable[[float], Perturbation]) -> None:
        self.name, self._perturbation = name, perturbation

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """All of epsilon in one pure release; no delta is needed.

        Raises:
            InputError: epsilon or the number of nodes is out of reach.
        """
        if config.privacy.accounting != "exact":
            raise InputError(
                f"accounting: expected 'exact' for {self.name}, whose authors count alike, got "
                f"'{config.privacy.accounting}'"
            )
        epsilon = config.privacy.epsilon
        if math.isinf(epsilon):
            return unprotected(releases=1)
        self._perturbation(epsilon).refuse_many(sizes.num_nodes)
        return Promise(
            plan="certified",
            certified_epsilon=epsilon,
            claimed_epsilon=None,
            delta=0.0,
            noise_stds=(),
            releases=1,
        )

    def stages(self, config: Config, sizes: Sizes) -> int:
        """All layers are trained together."""
        return 1

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Encoder and layers, on noisy edges."""
        run, privacy = config.run, config.privacy
        inputs = Inputs(features, Scaling(features))
        extractor = PerturbedMessagePassing(
            encoder_of(config, sizes, num_inputs=inputs.width),
            width=run.width,
            num_layers=num_layers_of(config),
            truncated=False,
            exact=privacy.spectral_norm == "exact",
            noise=None,
            seed=run.seed,
        )
        private = math.isfinite(privacy.epsilon)
        noisy = door.perturb(self._perturbation(privacy.epsilon) if private else None)
        graph = sampled_graph_of(config, noisy, aggregator="gcn")
        return SampledRepresentation(extractor, inputs=inputs, graph=graph)

    def label_side(self, config: Config, sizes: Sizes) -> Decoder:
        """CONCAT or GRU over the layers."""
        return decoder_of(config, sizes, depth=num_layers_of(config))
