"""What came back to the data party about each node's label, added up over a run.

voices[node]     what the node said of itself, where labels are lent
gradients[node]  sum over all training steps of the loss's gradient by the node's embedding
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.method import Sizes
from vesper.method.settings import Config
from vesper.party.representation import NOBODY, Nodes, Representation
from vesper.run.passed_on import PassedOn
from vesper.run.watched_method import WatchedMethod


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
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """The data side, watched."""
        inner = super().data_side(config, sizes, features=features, door=door)
        self.returned = ReturnedRepresentation(inner, num_nodes=sizes.num_nodes)
        return self.returned
