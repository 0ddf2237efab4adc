"""What was shown of each node, added up over a run.

    sums[node] = sum of its rows, over all the times it was a root

Rows are those to which noise was added, one layer after the other, as the paper's Theorem 1 counts
them; where a method adds none, the embeddings that were sent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.method.method import Sizes
from vesper.method.settings import Config
from vesper.party.representation import Nodes, Representation
from vesper.run.watched_method import WatchedMethod, put_row_noise, row_noise_of

Shown = NDArray[np.float64]


class LayeredNoise(LayerNoise):
    """Noise of another, with the rows of every layer kept until they are taken."""

    def __init__(self, own: LayerNoise) -> None:
        super().__init__(noise_std=own.noise_std, seed=0)
        self.generator = own.generator
        self._layers: list[Tensor] = []

    def perturb(self, rows: Tensor) -> Tensor:
        """Add fresh noise."""
        perturbed = super().perturb(rows)
        self._layers.append(perturbed.detach())
        return perturbed

    def take(self, num_roots: int) -> Shown:
        """Rows of the roots, layer after layer: (num_roots, layers x width)."""
        layers, self._layers = self._layers, []
        return np.concatenate([rows[:num_roots].double().numpy() for rows in layers], axis=1)


class ShownRepresentation:
    """Adds up what is shown of each node."""

    def __init__(
        self, inner: Representation, *, noise: LayeredNoise | None, num_nodes: int
    ) -> None:
        self.inner, self._noise, self._num_nodes = inner, noise, num_nodes
        self.sums: Shown | None = None
        """(num_nodes, layers x width) of everything shown so far."""
        self.times = np.zeros(num_nodes, dtype=np.int64)
        """How often each node was shown."""

    @property
    def module(self) -> nn.Module:
        """All weights."""
        return self.inner.module

    def hear(self, nodes: Nodes, voices: NDArray[np.float32]) -> None:
        """Hand on."""
        self.inner.hear(nodes, voices)

    def begin_stage(self, stage: int) -> None:
        """Hand on."""
        self.inner.begin_stage(stage)

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
        """Hand on, and note."""
        embeddings = self.inner.embed(nodes, training=training)
        if self._noise is None:
            rows = embeddings.detach().double().flatten(start_dim=1).numpy()
        else:
            rows = self._noise.take(len(nodes))
        if self.sums is None:
            self.sums = np.zeros((self._num_nodes, rows.shape[1]))
        self.sums[nodes] += rows
        self.times[nodes] += 1
        return embeddings


class ShownMethod(WatchedMethod):
    """A method of which everything shown of nodes is added up."""

    shown: ShownRepresentation
    """Made when the run begins."""

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """The data side, watched."""
        inner = super().data_side(config, sizes, features=features, door=door)
        own = row_noise_of(inner)
        if own is not None and self._noise_seed is not None:
            own = LayerNoise(noise_std=own.noise_std, seed=self._noise_seed)
            # Which neighbours are sampled is secret: each run draws others.
            inner.recall({"step": np.array(self._noise_seed << 20)})
        noise = None if own is None else LayeredNoise(own)
        if noise is not None:
            put_row_noise(inner, noise)
        self.shown = ShownRepresentation(inner, noise=noise, num_nodes=sizes.num_nodes)
        return self.shown
