"""Recording methods: wrap a method to record what each party receives about a node.

    at the label party
    sums[node]        sum of the node's noisy rows, over all times that it was a root

    at the data party
    label_posteriors  as the label party shares them, one row per labelled node
    gradients[node]   sum over all training steps of the gradient of the loss with respect to the
                      node's embedding

Noisy rows are those to which noise was added, layer by layer, as the paper's Theorem 1 counts them;
where a method adds no noise to rows, they are the embeddings that were sent.
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
    """A representation that delegates to another; subclasses record what passes through."""

    def __init__(self, inner: Representation) -> None:
        self.inner = inner

    @property
    def module(self) -> nn.Module:
        """All weights of the inner representation."""
        return self.inner.module

    @property
    def is_random(self) -> bool:
        """Delegate."""
        return self.inner.is_random

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Delegate."""
        self.inner.set_labels(nodes, label_posteriors, query_nodes)

    def begin_stage(self, stage: int) -> None:
        """Delegate."""
        self.inner.begin_stage(stage)

    def select_stage(self, stage: int) -> None:
        """Delegate."""
        self.inner.select_stage(stage)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Delegate."""
        return self.inner.state_arrays()

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Delegate."""
        self.inner.load_state_arrays(arrays)

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Delegate."""
        return self.inner.fitted_arrays()

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Delegate."""
        self.inner.load_fitted(arrays)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Delegate."""
        return self.inner.embed(nodes, training=training)


class RecordingMethod:
    """A method that delegates to another; subclasses wrap the representation it makes.

    Args:
        method: the method to record.
        noise_seed: seed of the noise that the method adds to rows, if it does; None: the method's.
    """

    name: str
    defaults: Mapping[str, object]

    def __init__(self, method: Method, *, noise_seed: int | None = None) -> None:
        self.name, self.defaults = method.name, method.defaults
        self._method, self._noise_seed = method, noise_seed

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Delegate."""
        return self._method.noise_plan(config, sizes)

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """Delegate."""
        return self._method.stages(config, sizes)

    def make_decoder(self, config: Config, sizes: PublicSizes) -> Decoder:
        """Delegate."""
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
        """Delegate."""
        return self._method.make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )


def row_noise_of(representation: Representation) -> LayerNoise | None:
    """The noise that a representation adds to the rows of its layers, as the paper's plan does."""
    module = representation.module
    return module.noise if isinstance(module, PerturbedMessagePassing | VfgnnExtractor) else None


def set_row_noise(representation: Representation, noise: LayerNoise) -> None:
    """Replace the noise that a representation adds to the rows of its layers."""
    module = representation.module
    assert isinstance(module, PerturbedMessagePassing | VfgnnExtractor)
    module.noise = noise


class FeedbackRecordingRepresentation(RepresentationWrapper):
    """Records what the label party sends: label posteriors and gradients."""

    def __init__(self, inner: Representation, *, num_nodes: int) -> None:
        super().__init__(inner)
        self._num_nodes = num_nodes
        self.labelled_nodes: Nodes = NO_NODES
        self.label_posteriors: NDArray[np.float32] | None = None
        """(labelled nodes, outputs)"""
        self._gradients: NDArray[np.float64] | None = None
        self._newest: tuple[Nodes, Tensor] | None = None

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Record, and delegate."""
        self.labelled_nodes, self.label_posteriors = nodes.copy(), label_posteriors.copy()
        super().set_labels(nodes, label_posteriors, query_nodes)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Delegate; the gradient of this batch is recorded at the next call."""
        self._record()
        embeddings = super().embed(nodes, training=training)  # (B, width, depth)
        if embeddings.requires_grad:
            embeddings.retain_grad()
            self._newest = nodes, embeddings
        return embeddings

    def gradients(self) -> NDArray[np.float64] | None:
        """Sums of gradients, also over the depth of embeddings: (num_nodes, width)."""
        self._record()
        return self._gradients

    def _record(self) -> None:
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
    """A method whose representation records what the label party sends."""

    recording: FeedbackRecordingRepresentation
    """Created at the start of the run."""

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make the representation, wrapped to record."""
        inner = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        self.recording = FeedbackRecordingRepresentation(inner, num_nodes=sizes.num_nodes)
        return self.recording


RowSums = NDArray[np.float64]


RowObserver = Callable[[Representation, Nodes, list["LayerRows"]], None]
"""Called after each embedding with the representation, its roots and the rows of every layer."""


class LayerRows(NamedTuple):
    """Rows of one layer before and after noise; those of roots come first."""

    means: Tensor
    perturbed: Tensor


class RecordingNoise(LayerNoise):
    """Draws from another layer noise, and stores the rows of every layer until they are taken."""

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
        """Rows of the last layer."""
        return self._layers[-1]

    def take(self) -> list[LayerRows]:
        """Return the rows of all layers since the last call, and drop them."""
        layers, self._layers = self._layers, []
        return layers


class RowRecordingRepresentation(RepresentationWrapper):
    """Sums the noisy rows of each node."""

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
        """Sums of all rows so far, (num_nodes, layers x width)."""
        self.num_times = np.zeros(num_nodes, dtype=np.int64)
        """How often each node was a root."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Delegate, and record."""
        embeddings = super().embed(nodes, training=training)
        if self._noise is None:
            rows = embeddings.detach().double().flatten(start_dim=1).numpy()
        else:
            layers = self._noise.take()
            parts = [layer.perturbed[: len(nodes)].double().numpy() for layer in layers]
            rows = np.concatenate(parts, axis=1)  # (B, layers x width)
            if self._row_observer is not None:
                self._row_observer(self.inner, nodes, layers)
        if self.sums is None:
            self.sums = np.zeros((self._num_nodes, rows.shape[1]))
        self.sums[nodes] += rows
        self.num_times[nodes] += 1
        return embeddings


class RowRecordingMethod(RecordingMethod):
    """A method whose representation sums the noisy rows of each node.

    Args:
        method: the method to record.
        noise_seed: as in `RecordingMethod`.
        row_observer: called after every embedding whose rows were perturbed.
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
    """Created at the start of the run."""

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make the representation, wrapped to record."""
        inner = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        own = row_noise_of(inner)
        if own is not None and self._noise_seed is not None:
            own = LayerNoise(noise_std=own.noise_std, seed=self._noise_seed)
            # Which neighbours are sampled is secret, so each run samples others.
            inner.load_state_arrays({"step": np.array(self._noise_seed << 20)})
        noise = None if own is None else RecordingNoise(own)
        if noise is not None:
            set_row_noise(inner, noise)
        self.recorder = RowRecordingRepresentation(
            inner, noise=noise, num_nodes=sizes.num_nodes, row_observer=self._row_observer
        )
        return self.recorder
