"""What was shown of the ends of canary edges, added up: for plans without an exact ratio.

    shown[pair] = (sum of the rows of one end, sum of the rows of the other)

Rows are those to which noise was added, one layer after the other, as the paper's Theorem 1 counts
them; where a method adds none, the embeddings that were sent.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.audit.watched_method import WatchedMethod, adds_noise_to_rows, put_noise
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.method.method import Sizes
from vesper.method.settings import Config
from vesper.party.representation import Forgetful, Nodes, Representation

Shown = NDArray[np.float64]


class LayeredNoise(LayerNoise):
    """Noise that keeps the rows of every layer until they are taken."""

    def __init__(self, *, noise_std: float, seed: int) -> None:
        super().__init__(noise_std=noise_std, seed=seed)
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


class ShownRepresentation(Forgetful):
    """Adds up what is shown of each node."""

    def __init__(
        self, inner: Representation, *, noise: LayeredNoise | None, num_nodes: int
    ) -> None:
        self._inner, self._noise, self._num_nodes = inner, noise, num_nodes
        self.sums: Shown | None = None

    @property
    def module(self) -> nn.Module:
        """All weights."""
        return self._inner.module

    def hear(self, nodes: Nodes, voices: NDArray[np.float32]) -> None:
        """Hand on."""
        self._inner.hear(nodes, voices)

    def begin_stage(self, stage: int) -> None:
        """Hand on."""
        self._inner.begin_stage(stage)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Hand on, and note."""
        embeddings = self._inner.embed(nodes, training=training)
        if self._noise is None:
            rows = embeddings.detach().double().flatten(start_dim=1).numpy()
        else:
            rows = self._noise.take(len(nodes))
        if self.sums is None:
            self.sums = np.zeros((self._num_nodes, rows.shape[1]))
        self.sums[nodes] += rows
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
        # Which neighbours are sampled is secret: each run draws others.
        inner.recall({"step": np.array(self._noise_seed << 20)})
        noise = None
        if adds_noise_to_rows(inner):
            noise_std = self.promise(config, sizes).noise_stds[0]
            noise = LayeredNoise(noise_std=noise_std, seed=self._noise_seed)
            put_noise(inner, noise)
        self.shown = ShownRepresentation(inner, noise=noise, num_nodes=sizes.num_nodes)
        return self.shown
