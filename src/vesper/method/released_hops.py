"""What GAP and ProGAP share: features in, unit messages to the door, released hops kept as data."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.settings import Config
from vesper.model.hop_network import HopNetwork
from vesper.model.scaling import Inputs, Scaling
from vesper.party.representation import Nodes

ROWS = 1 << 14
"""Nodes at a time when all of them are needed."""


def expect_published_encoder(config: Config) -> None:
    """Refuse an encoder that these methods do not have."""
    if config.run.encoder != "mlp":
        raise InputError(
            f"encoder: expected 'mlp' for {config.run.method}, as published, got "
            f"'{config.run.encoder}'; method 'vesper' reads sequences"
        )


class ReleasedHops:
    """The part of a representation that knows the door; methods say what is summed and when."""

    def __init__(
        self,
        network: HopNetwork,
        *,
        scaling: Scaling,
        features: Features,
        door: Door,
        noise_stds: Sequence[float],
    ) -> None:
        self._network, self._num_nodes = network, len(features)
        self._inputs = Inputs(features, scaling)
        self._door, self._noise_stds = door, tuple(noise_stds)
        self._hops: list[Tensor] = []  # a hop: (num_nodes, message_width), data

    @property
    def module(self) -> nn.Module:
        """Encoder and bases."""
        return self._network

    @property
    def depth(self) -> int:
        """Hops the label party sees, hop 0 among them."""
        return len(self._noise_stds) + 1

    def hear(self, nodes: Nodes, voices: NDArray[np.float32]) -> None:
        """Take no beliefs: these methods were published without."""

    def _encode(self, nodes: Nodes) -> Tensor:
        encodings: Tensor = self._network.encoder(self._inputs.of(nodes))
        return encodings  # (B, message_width)

    def _release(self, rows: Tensor) -> Tensor:
        """Release the neighbour sum of rows scaled to length 1; (num_nodes, message_width)."""
        messages = F.normalize(rows, dim=1, eps=1e-12)
        noise_std = self._noise_stds[len(self._hops) - 1]
        return torch.from_numpy(self._door.release(messages.numpy(), noise_std=noise_std))

    def _blocks(self) -> Iterator[Nodes]:
        for start in range(0, self._num_nodes, ROWS):
            yield np.arange(start, min(start + ROWS, self._num_nodes))
