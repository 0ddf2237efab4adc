"""What was shown of each node, added up over a run.

    sums[node] = sum of its rows, over all the times it was a root

Rows are those to which noise was added, one layer after the other, as the paper's Theorem 1 counts
them; where a method adds none, the embeddings that were sent.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.sampled.noise import LayerNoise
from vesper.method.method import Method, Sizes
from vesper.method.settings import Config
from vesper.party.representation import Nodes, Representation
from vesper.run.passed_on import PassedOn
from vesper.run.watched_method import WatchedMethod, put_row_noise, row_noise_of

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
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """The data side, watched."""
        inner = super().data_side(config, sizes, features=features, door=door)
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
