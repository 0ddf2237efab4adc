"""A representation in front of another one: hands everything on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

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
