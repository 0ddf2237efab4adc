"""What was shown of each node, added up over a run.

    sums[node] = sum of its rows, over all the times it was a root

Rows are those to which noise was added, one layer after the other, as the paper's Theorem 1 counts
them; where a method adds none, the embeddings that were sent.

A representation in front of another one: hands everything on.

A method whose data side is watched: everything else is as the method has it.

What came back to the data party about each node's label, added up over a run.

voices[node]     what the node said of itself, where labels are lent
gradients[node]  sum over all training steps of the loss's gradient by the node's embedding
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.sampled import LayerNoise
from vesper.method.base import Method, Promise, Sizes
from vesper.method.settings import Config
from vesper.model.decoders import Decoder
from vesper.model.message_passing import PerturbedMessagePassing, VfgnnExtractor
from vesper.party.representation import NOBODY, Nodes, Representation


class PassedOn:
    """Does nothing of its own; subclasses look at what passes."""

    def __init__(self, inner: Representation) -> None:
        self.inner = inner

    @property
    def module(self) -> nn.Module:
        """All weights."""
        return self.inner.module

    @property
    def draws(self) -> bool:
        """Hand on."""
        return self.inner.draws

    def hear(self, nodes: Nodes, voices: NDArray[np.float32], asked: Nodes = NOBODY) -> None:
        """Hand on."""
        self.inner.hear(nodes, voices, asked)

    def begin_stage(self, stage: int) -> None:
        """Hand on."""
        self.inner.begin_stage(stage)

    def settle(self, stage: int) -> None:
        """Hand on."""
        self.inner.settle(stage)

    def remember(self) -> dict[str, NDArray[Any]]:
        """Hand on."""
        return self.inner.remember()

    def recall(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Hand on."""
        self.inner.recall(arrays)

    def fitted(self) -> dict[str, NDArray[Any]]:
        """Hand on."""
        return self.inner.fitted()

    def keep_to(self, fitted: dict[str, NDArray[Any]]) -> None:
        """Hand on."""
        self.inner.keep_to(fitted)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Hand on."""
        return self.inner.embed(nodes, training=training)


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
        self,
        config: Config,
        sizes: Sizes,
        *,
        noise_plan: Promise,
        features: Features,
        door: Door,
    ) -> Representation:
        """As the method has it."""
        return self._method.data_side(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )


def row_noise_of(representation: Representation) -> LayerNoise | None:
    """The noise that it adds to the rows of its layers, as the paper's plan does."""
    module = representation.module
    return module.noise if isinstance(module, PerturbedMessagePassing | VfgnnExtractor) else None


def put_row_noise(representation: Representation, noise: LayerNoise) -> None:
    """Let it add this noise instead of its own."""
    module = representation.module
    assert isinstance(module, PerturbedMessagePassing | VfgnnExtractor)
    module.noise = noise


class ReturnedRepresentation(PassedOn):
    """Notes what the label party sends."""

    def __init__(self, inner: Representation, *, num_nodes: int) -> None:
        super().__init__(inner)
        self._num_nodes = num_nodes
        self.speakers: Nodes = NOBODY
        self.voices: NDArray[np.float32] | None = None
        """(speakers, outputs)"""
        self._gradients: NDArray[np.float64] | None = None
        self._newest: tuple[Nodes, Tensor] | None = None

    def hear(self, nodes: Nodes, voices: NDArray[np.float32], asked: Nodes = NOBODY) -> None:
        """Hand on, and note."""
        self.speakers, self.voices = nodes.copy(), voices.copy()
        super().hear(nodes, voices, asked)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Hand on; the gradient will have come before the next time."""
        self._note()
        embeddings = super().embed(nodes, training=training)  # (B, width, depth)
        if embeddings.requires_grad:
            embeddings.retain_grad()
            self._newest = nodes, embeddings
        return embeddings

    def gradients(self) -> NDArray[np.float64] | None:
        """Sums of gradients, (num_nodes, width), over the depth of embeddings too."""
        self._note()
        return self._gradients

    def _note(self) -> None:
        if self._newest is None:
            return
        nodes, embeddings = self._newest
        self._newest = None
        if embeddings.grad is None:
            return
        rows = embeddings.grad.double().sum(dim=2).numpy()  # (B, width)
        if self._gradients is None:
            self._gradients = np.zeros((self._num_nodes, rows.shape[1]))
        np.add.at(self._gradients, nodes, rows)


class ReturnedMethod(WatchedMethod):
    """A method whose data side notes what comes back."""

    returned: ReturnedRepresentation
    """Made when the run begins."""

    def data_side(
        self,
        config: Config,
        sizes: Sizes,
        *,
        noise_plan: Promise,
        features: Features,
        door: Door,
    ) -> Representation:
        """The data side, watched."""
        inner = super().data_side(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        self.returned = ReturnedRepresentation(inner, num_nodes=sizes.num_nodes)
        return self.returned


Shown = NDArray[np.float64]


Watch = Callable[[Representation, Nodes, list["Layer"]], None]
"""Is told, after each embedding, of whom it was, and what every layer gave."""


class Layer(NamedTuple):
    """Rows of one layer before the noise and after, those of roots first."""

    means: Tensor
    perturbed: Tensor


class KeptNoise(LayerNoise):
    """Noise of another, with what every layer gave kept until it is taken."""

    def __init__(self, own: LayerNoise) -> None:
        super().__init__(noise_std=own.noise_std, seed=0)
        self.generator = own.generator
        self._layers: list[Layer] = []

    def perturb(self, rows: Tensor) -> Tensor:
        """Add fresh noise."""
        perturbed = super().perturb(rows)
        self._layers.append(Layer(rows.detach(), perturbed.detach()))
        return perturbed

    @property
    def newest(self) -> Layer:
        """What the last layer gave."""
        return self._layers[-1]

    def take(self) -> list[Layer]:
        """Give all layers since the last time, and forget them."""
        layers, self._layers = self._layers, []
        return layers


class ShownRepresentation(PassedOn):
    """Adds up what is shown of each node."""

    def __init__(
        self,
        inner: Representation,
        *,
        noise: KeptNoise | None,
        num_nodes: int,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(inner)
        self._watch, self._noise, self._num_nodes = watch, noise, num_nodes
        self.sums: Shown | None = None
        """(num_nodes, layers x width) of everything shown so far."""
        self.times = np.zeros(num_nodes, dtype=np.int64)
        """How often each node was shown."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Hand on, and note."""
        embeddings = super().embed(nodes, training=training)
        if self._noise is None:
            rows = embeddings.detach().double().flatten(start_dim=1).numpy()
        else:
            layers = self._noise.take()
            shown = [layer.perturbed[: len(nodes)].double().numpy() for layer in layers]
            rows = np.concatenate(shown, axis=1)  # (B, layers x width)
            if self._watch is not None:
                self._watch(self.inner, nodes, layers)
        if self.sums is None:
            self.sums = np.zeros((self._num_nodes, rows.shape[1]))
        self.sums[nodes] += rows
        self.times[nodes] += 1
        return embeddings


class ShownMethod(WatchedMethod):
    """A method of which everything shown of nodes is added up.

    Args:
        method: the method itself.
        noise_seed: as in `WatchedMethod`.
        watch: is told of every embedding whose rows were perturbed.
    """

    def __init__(
        self, method: Method, *, noise_seed: int | None = None, watch: Watch | None = None
    ) -> None:
        super().__init__(method, noise_seed=noise_seed)
        self._watch = watch

    shown: ShownRepresentation
    """Made when the run begins."""

    def data_side(
        self,
        config: Config,
        sizes: Sizes,
        *,
        noise_plan: Promise,
        features: Features,
        door: Door,
    ) -> Representation:
        """The data side, watched."""
        inner = super().data_side(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        own = row_noise_of(inner)
        if own is not None and self._noise_seed is not None:
            own = LayerNoise(noise_std=own.noise_std, seed=self._noise_seed)
            # Which neighbours are sampled is secret: each run draws others.
            inner.recall({"step": np.array(self._noise_seed << 20)})
        noise = None if own is None else KeptNoise(own)
        if noise is not None:
            put_row_noise(inner, noise)
        self.shown = ShownRepresentation(
            inner, noise=noise, num_nodes=sizes.num_nodes, watch=self._watch
        )
        return self.shown
