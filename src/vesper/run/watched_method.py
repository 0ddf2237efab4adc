"""A method whose data side is watched: everything else is as the method has it."""

from collections.abc import Mapping

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.method.method import Method, Promise, Sizes
from vesper.method.settings import Config
from vesper.model.decoder import Decoder
from vesper.model.pmp import PerturbedMessagePassing
from vesper.model.vfgnn import VfgnnExtractor
from vesper.party.representation import Representation


class WatchedMethod:
    """Hands everything on; subclasses watch the data side they make.

    Args:
        method: the method itself.
        noise_seed: of the noise of this run, where the method adds noise to rows; None leaves it.
    """

    name: str
    defaults: Mapping[str, object]

    def __init__(self, method: Method, *, noise_seed: int | None = None) -> None:
        self.name, self.defaults = method.name, method.defaults
        self._method, self._noise_seed = method, noise_seed

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """What the method promises."""
        return self._method.promise(config, sizes)

    def stages(self, config: Config, sizes: Sizes) -> int:
        """As the method has it."""
        return self._method.stages(config, sizes)

    def label_side(self, config: Config, sizes: Sizes) -> Decoder:
        """As the method has it."""
        return self._method.label_side(config, sizes)

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """As the method has it."""
        return self._method.data_side(config, sizes, features=features, door=door)


def row_noise_of(representation: Representation) -> LayerNoise | None:
    """The noise that it adds to the rows of its layers, as the paper's plan does."""
    module = representation.module
    return module.noise if isinstance(module, PerturbedMessagePassing | VfgnnExtractor) else None


def put_row_noise(representation: Representation, noise: LayerNoise) -> None:
    """Let it add this noise instead of its own."""
    module = representation.module
    assert isinstance(module, PerturbedMessagePassing | VfgnnExtractor)
    module.noise = noise
