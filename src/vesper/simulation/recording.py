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
from vesper.method.base import Method, NoisePlan, PublicSizes
from vesper.method.settings import Config
from vesper.model.decoders import Decoder
from vesper.model.message_passing import PerturbedMessagePassing, VfgnnExtractor
from vesper.party.representation import NO_NODES, Nodes, Representation


class RepresentationWrapper:
    """Does nothing of its own; subclasses look at what passes."""

    def __init__(self, inner: Representation) -> None:
        self.inner = inner

    @property
    def module(self) -> nn.Module:
        """All weights."""
        return self.inner.module

    @property
    def is_random(self) -> bool:
        """Hand on."""
        return self.inner.is_random

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Hand on."""
        self.inner.set_labels(nodes, label_posteriors, query_nodes)

    def begin_stage(self, stage: int) -> None:
        """Hand on."""
        self.inner.begin_stage(stage)

    def select_stage(self, stage: int) -> None:
        """Hand on."""
        self.inner.select_stage(stage)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Hand on."""
        return self.inner.state_arrays()

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Hand on."""
        self.inner.load_state_arrays(arrays)

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Hand on."""
        return self.inner.fitted_arrays()

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Hand on."""
        self.inner.load_fitted(arrays)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Hand on."""
        return self.inner.embed(nodes, training=training)


class RecordingMethod:
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

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """What the method promises."""
        return self._method.noise_plan(config, sizes)

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """As the method has it."""
        return self._method.stages(config, sizes)

    def make_decoder(self, config: Config, sizes: PublicSizes) -> Decoder:
        """As the method has it."""
        return self._method.make_decoder(config, sizes)

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """As the method has it."""
        return self._method.make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )


def row_noise_of(representation: Representation) -> LayerNoise | None:
    """The noise that it adds to the rows of its layers, as the paper's plan does."""
    module = representation.module
    return module.noise if isinstance(module, PerturbedMessagePassing | VfgnnExtractor) else None


def set_row_noise(representation: Representation, noise: LayerNoise) -> None:
    """Let it add this noise instead of its own."""
    module = representation.module
    assert isinstance(module, PerturbedMessagePassing | VfgnnExtractor)
    module.noise = noise


class FeedbackRecordingRepresentation(RepresentationWrapper):
    """Notes what the label party sends."""

    def __init__(self, inner: Representation, *, num_nodes: int) -> None:
        super().__init__(inner)
        self._num_nodes = num_nodes
        self.labelled_nodes: Nodes = NO_NODES
        self.label_posteriors: NDArray[np.float32] | None = None
        """(speakers, outputs)"""
        self._gradients: NDArray[np.float64] | None = None
        self._newest: tuple[Nodes, Tensor] | None = None

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Hand on, and note."""
        self.labelled_nodes, self.label_posteriors = nodes.copy(), label_posteriors.copy()
        super().set_labels(nodes, label_posteriors, query_nodes)

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


class FeedbackRecordingMethod(RecordingMethod):
    """A method whose data side notes what comes back."""

    recording: FeedbackRecordingRepresentation
    """Made when the run begins."""

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """The data side, watched."""
        inner = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        self.recording = FeedbackRecordingRepresentation(inner, num_nodes=sizes.num_nodes)
        return self.recording


RowSums = NDArray[np.float64]


RowObserver = Callable[[Representation, Nodes, list["LayerRows"]], None]
"""Is told, after each embedding, of whom it was, and what every layer gave."""


class LayerRows(NamedTuple):
    """Rows of one layer before the noise and after, those of roots first."""

    means: Tensor
    perturbed: Tensor


class RecordingNoise(LayerNoise):
    """Noise of another, with what every layer gave kept until it is taken."""

    def __init__(self, own: LayerNoise) -> None:
        super().__init__(noise_std=own.noise_std, seed=0)
        self.generator = own.generator
        self._layers: list[LayerRows] = []

    def perturb(self, rows: Tensor) -> Tensor:
        """Add fresh noise."""
        perturbed = super().perturb(rows)
        self._layers.append(LayerRows(rows.detach(), perturbed.detach()))
        return perturbed

    @property
    def newest(self) -> LayerRows:
        """What the last layer gave."""
        return self._layers[-1]

    def take(self) -> list[LayerRows]:
        """Give all layers since the last time, and forget them."""
        layers, self._layers = self._layers, []
        return layers


class RowRecordingRepresentation(RepresentationWrapper):
    """Adds up what is shown of each node."""

    def __init__(
        self,
        inner: Representation,
        *,
        noise: RecordingNoise | None,
        num_nodes: int,
        row_observer: RowObserver | None = None,
    ) -> None:
        super().__init__(inner)
        self._row_observer, self._noise, self._num_nodes = row_observer, noise, num_nodes
        self.sums: RowSums | None = None
        """(num_nodes, layers x width) of everything shown so far."""
        self.num_times = np.zeros(num_nodes, dtype=np.int64)
        """How often each node was shown."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Hand on, and note."""
        embeddings = super().embed(nodes, training=training)
        if self._noise is None:
            rows = embeddings.detach().double().flatten(start_dim=1).numpy()
        else:
            layers = self._noise.take()
            recording = [layer.perturbed[: len(nodes)].double().numpy() for layer in layers]
            rows = np.concatenate(recording, axis=1)  # (B, layers x width)
            if self._row_observer is not None:
                self._row_observer(self.inner, nodes, layers)
        if self.sums is None:
            self.sums = np.zeros((self._num_nodes, rows.shape[1]))
        self.sums[nodes] += rows
        self.num_times[nodes] += 1
        return embeddings


class RowRecordingMethod(RecordingMethod):
    """A method of which everything shown of nodes is added up.

    Args:
        method: the method itself.
        noise_seed: as in `RecordingMethod`.
        row_observer: is told of every embedding whose rows were perturbed.
    """

    def __init__(
        self,
        method: Method,
        *,
        noise_seed: int | None = None,
        row_observer: RowObserver | None = None,
    ) -> None:
        super().__init__(method, noise_seed=noise_seed)
        self._row_observer = row_observer

    recorder: RowRecordingRepresentation
    """Made when the run begins."""

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """The data side, watched."""
        inner = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        own = row_noise_of(inner)
        if own is not None and self._noise_seed is not None:
            own = LayerNoise(noise_std=own.noise_std, seed=self._noise_seed)
            # Which neighbours are sampled is secret: each run draws others.
            inner.load_state_arrays({"step": np.array(self._noise_seed << 20)})
        noise = None if own is None else RecordingNoise(own)
        if noise is not None:
            set_row_noise(inner, noise)
        self.recorder = RowRecordingRepresentation(
            inner, noise=noise, num_nodes=sizes.num_nodes, row_observer=self._row_observer
        )
        return self.recorder
