"""What GAP and ProGAP share: features in, unit messages to the door, released hops kept as data.

    data party    inputs -> encoder -> hop 0;   hop k = what becomes of door.release(unit rows)
    label party   one head a stage, over the hops so far

Constants of the authors' code: 16-wide encodings, SELU, batch normalisation, Adam 0.01, 100 epochs
a stage; ours: scaled inputs, and stopping by validation. The authors tune hops and dropout: here
both are those of the certified plan, which are also better for these (docs/decisions/0005).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.choices import hops_for
from vesper.method.claimed import noise_of_sums
from vesper.method.decoding import refuse_other_decoder
from vesper.method.method import Promise, Sizes
from vesper.method.settings import Config
from vesper.model.hop_network import HopDecoder, HopNetwork
from vesper.model.scaling import Inputs, Scaling
from vesper.party.representation import NOBODY, Forgetful, Nodes, Representation

ROWS = 1 << 14
"""Nodes at a time when all of them are needed."""

PUBLISHED: Mapping[str, object] = {
    "epochs": 100,
    "patience": 20,
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "label_messages": False,
}


class ReleasedHops(Forgetful, Representation):
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

    def hear(self, nodes: Nodes, voices: NDArray[np.float32], asked: Nodes = NOBODY) -> None:
        """Take no beliefs: these methods were published without."""

    def fitted(self) -> dict[str, NDArray[Any]]:
        """How features are scaled."""
        return {**self._inputs.scaling.fitted()}

    def keep_to(self, fitted: dict[str, NDArray[Any]]) -> None:
        """Take it over."""
        self._inputs.scaling.keep_to(fitted)

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


class ReleasedHopsMethod(ABC):
    """Edges only through `Door.release`, once a hop; methods name their bases and heads."""

    name: str
    defaults: Mapping[str, object] = PUBLISHED
    representation: type[ReleasedHops]
    activates_in_head: bool
    """Where batch normalisation and SELU stand: before a head, or at the end of every base."""

    @abstractmethod
    def bases(self, hops: int) -> int:
        """How many hops have a base."""

    @abstractmethod
    def heads(self, hops: int) -> Sequence[int]:
        """How many hops the head of each stage sees, hop 0 among them."""

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """Split the budget over the hops."""
        if config.run.encoder != "mlp":
            raise InputError(
                f"encoder: expected 'mlp' for {config.run.method}, as published, got "
                f"'{config.run.encoder}'; method 'vesper' reads sequences"
            )
        refuse_other_decoder(config)
        return noise_of_sums(config, sizes, releases=hops_for(config.privacy, sizes))

    def stages(self, config: Config, sizes: Sizes) -> int:
        """As many as heads."""
        return len(self.heads(hops_for(config.privacy, sizes)))

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Encoder and bases, on releases."""
        run, noise_stds = config.run, self.promise(config, sizes).noise_stds
        scaling = Scaling(features)
        network = HopNetwork(
            scaling.width,
            width=run.width,
            message_width=run.message_width,
            bases=self.bases(hops_for(config.privacy, sizes)),
            plain_last=self.activates_in_head,
            dropout=run.dropout,
            seed=run.seed,
        )
        return self.representation(
            network, scaling=scaling, features=features, door=door, noise_stds=noise_stds
        )

    def label_side(self, config: Config, sizes: Sizes) -> HopDecoder:
        """One head a stage."""
        return HopDecoder(
            message_width=config.run.message_width,
            depths=self.heads(hops_for(config.privacy, sizes)),
            activate=self.activates_in_head,
            outputs=sizes.num_classes,
            seed=config.run.seed + 1,
        )
