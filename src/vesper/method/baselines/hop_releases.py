"""GAP and ProGAP: features in, unit messages to the door, released hops stored as data.

    data party    inputs -> encoder -> hop 0;   hop k follows from door.release(unit rows)
    label party   one head per stage, over the hops so far

GAP (Sajadmanesh et al. 2023): aggregation perturbation, one release per hop, all at once.

    stage 0   train encoder and a head, edge-free;   h_0 = unit rows of the encodings
    between   h_k = unit rows of door.release(h_{k-1}),   k = 1 .. hops
    stage 1   train a base for every h_k and one head over all of them

ProGAP (Sajadmanesh and Gatica-Perez 2024): one release per stage, each stage on top of the last.

    stage 0   x_0 = base_0(features),                          edge-free
    stage k   x_k = base_k(door.release(unit rows of x_{k-1}))
              head_k over x_0 .. x_k side by side (jumping knowledge)

Earlier bases are frozen, which cost the authors 0.4 to 1.2 points and makes x_{k-1} data.

Constants of the authors' code: 16-wide encodings, SELU, batch normalisation, Adam 0.01, 100 epochs
per stage; ours: scaled inputs, and stopping by validation. The authors tune hops and dropout: here
both are those of the certified plan, which are also better for these methods (docs/decisions/0005).

Noise is counted exactly, or as others count it; what it really guarantees is in the noise plan.

| accounting | noise | certified |
| --- | --- | --- |
| `exact` | sensitivity sqrt 2, exact conversion | epsilon |
| `as-published` | sensitivity 1, Renyi conversion: too little | nothing; claimed epsilon |
| `theorem-1` | the paper's re-analysis, each batch of the run a release | the same |
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
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.certified.method import hops_for
from vesper.method.noise_plan import (
    budget_of,
    certified_plan,
    refuse_undrawable_noise,
    unprotected_plan,
)
from vesper.method.options import refuse_other_decoder
from vesper.method.settings import Config
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.gap_network import HopDecoder, HopNetwork, pad_hops
from vesper.party.representation import NO_NODES, Nodes, Representation, StatelessRepresentation
from vesper.privacy.accounting import theorem_1
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.published_noise import published_noise_std, true_epsilon_of
from vesper.privacy.planning.paper_plan import PAPER_BATCH_SIZE

LARGEST_CLAIMED_NOISE = 16_384.0
"""Claimed noise is not charged to a ledger, so it may be as large as can be drawn."""


def released_sums_plan(config: Config, sizes: PublicSizes, *, releases: int) -> NoisePlan:
    """Plan `releases` noisy sums, with noise by the accounting of the settings."""
    accounting = config.privacy.accounting
    if accounting == "exact":
        width = config.run.message_width
        return certified_plan(config.privacy, sizes, releases=releases, width=width)
    budget = budget_of(config.privacy, sizes)
    if budget is None:
        return unprotected_plan(releases)
    if accounting == "as-published":
        noise_std = published_noise_std(budget=budget, releases=releases)
    else:
        noise_std = _theorem_1_noise_std(config, sizes, budget, releases=releases)
    noise_stds = (noise_std,) * releases
    refuse_undrawable_noise(budget, noise_stds, most=LARGEST_CLAIMED_NOISE)
    return NoisePlan(
        plan="paper",
        certified_epsilon=None,
        claimed_epsilon=budget.epsilon,
        delta=budget.delta,
        noise_stds=noise_stds,
        worth_epsilon=true_epsilon_of(noise_stds=noise_stds, delta=budget.delta),
    )


def _theorem_1_noise_std(
    config: Config, sizes: PublicSizes, budget: Budget, *, releases: int
) -> float:
    training = theorem_1.PaperTraining(
        num_train_nodes=sizes.num_train,
        batch_size=min(config.run.batch_size or PAPER_BATCH_SIZE, sizes.num_train),
        max_degree=config.privacy.max_degree,
        num_layers=releases,
        num_epochs=config.run.epochs,
    )
    return theorem_1.noise_std_for(training=training, budget=budget)


ROWS_PER_BLOCK = 1 << 14
"""Nodes that are processed at a time when all of them are needed."""

PUBLISHED_DEFAULTS: Mapping[str, object] = {
    "epochs": 100,
    "patience": 20,
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "label_messages": False,
}


class ReleasedHops(StatelessRepresentation, Representation):
    """Base of representations with released hops; subclasses define what is summed and when."""

    def __init__(
        self,
        network: HopNetwork,
        *,
        scaling: FeatureScaling,
        features: Features,
        door: Door,
        noise_stds: Sequence[float],
    ) -> None:
        self._network, self._num_nodes = network, len(features)
        self._inputs = Inputs(features, scaling)
        self._door, self._noise_stds = door, tuple(noise_stds)
        self._hops: list[Tensor] = []  # one per hop: (num_nodes, message_width), data

    @property
    def module(self) -> nn.Module:
        """Encoder and bases."""
        return self._network

    @property
    def depth(self) -> int:
        """Number of hops that the label party sees, including hop 0."""
        return len(self._noise_stds) + 1

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Do nothing: these methods do not use labels in messages."""

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return how features are scaled."""
        return {**self._inputs.scaling.fitted_arrays()}

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Scale features as on the training graph."""
        self._inputs.scaling.load_fitted(arrays)

    def _encode(self, nodes: Nodes) -> Tensor:
        encodings: Tensor = self._network.encoder(self._inputs.rows(nodes))
        return encodings  # (B, message_width)

    def _release(self, rows: Tensor) -> Tensor:
        """Release the neighbour sums of rows scaled to length 1: (num_nodes, message_width)."""
        messages = F.normalize(rows, dim=1, eps=1e-12)
        noise_std = self._noise_stds[len(self._hops) - 1]
        return torch.from_numpy(self._door.release(messages.numpy(), noise_std=noise_std))

    def _blocks(self) -> Iterator[Nodes]:
        for start in range(0, self._num_nodes, ROWS_PER_BLOCK):
            yield np.arange(start, min(start + ROWS_PER_BLOCK, self._num_nodes))


class ReleasedHopsMethod(ABC):
    """Edges only through `Door.release`, once per hop; subclasses define bases and heads."""

    name: str
    defaults: Mapping[str, object] = PUBLISHED_DEFAULTS
    representation: type[ReleasedHops]
    activates_in_head: bool
    """Whether batch normalisation and SELU precede each head; otherwise they end each base."""

    @abstractmethod
    def bases(self, hops: int) -> int:
        """Return the number of hops that have a base."""

    @abstractmethod
    def heads(self, hops: int) -> Sequence[int]:
        """Return the number of hops that the head of each stage sees, including hop 0."""

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Split the budget over the hops."""
        if config.run.encoder != "mlp":
            raise InputError(
                f"encoder: expected 'mlp' for {config.run.method}, as published, got "
                f"'{config.run.encoder}'; use method 'certified' for sequences"
            )
        refuse_other_decoder(config)
        return released_sums_plan(config, sizes, releases=hops_for(config.privacy, sizes))

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """Return the number of heads."""
        return len(self.heads(hops_for(config.privacy, sizes)))

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make encoder and bases, on releases."""
        run = config.run
        scaling = FeatureScaling(features)
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
            network,
            scaling=scaling,
            features=features,
            door=door,
            noise_stds=noise_plan.noise_stds,
        )

    def make_decoder(self, config: Config, sizes: PublicSizes) -> HopDecoder:
        """Make one head per stage."""
        return HopDecoder(
            message_width=config.run.message_width,
            depths=self.heads(hops_for(config.privacy, sizes)),
            activate=self.activates_in_head,
            outputs=sizes.num_classes,
            seed=config.run.seed + 1,
        )


class GapRepresentation(ReleasedHops):
    """Encodings at stage 0; a base for every hop at stage 1."""

    def begin_stage(self, stage: int) -> None:
        """Release hop after hop before stage 1."""
        if stage == 1:
            self._hops = [self._encodings_of_all()]
            while len(self._hops) < self.depth:
                self._hops.append(F.normalize(self._release(self._hops[-1]), dim=1, eps=1e-12))

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """(B, message_width, hops + 1)."""
        if not self._hops:
            return pad_hops([F.normalize(self._encode(nodes), dim=1, eps=1e-12)], depth=self.depth)
        rows = torch.from_numpy(nodes)
        hops = [base(hop[rows]) for base, hop in zip(self._network.bases, self._hops, strict=True)]
        return pad_hops(hops, depth=self.depth)

    def select_stage(self, stage: int) -> None:
        """Return to encodings for stage 0: its head reads these, not their bases."""
        if stage == 0:
            self._hops = []

    @torch.no_grad()
    def _encodings_of_all(self) -> Tensor:
        self._network.eval()
        encodings = torch.cat([self._encode(nodes) for nodes in self._blocks()])
        return F.normalize(encodings, dim=1, eps=1e-12)  # (num_nodes, message_width)


class GapMethod(ReleasedHopsMethod):
    """All hops are released between two stages: encoder, then classifier."""

    name = "gap"
    representation = GapRepresentation
    activates_in_head = True

    def bases(self, hops: int) -> int:
        """Return one more than hops: hop 0 has a base too."""
        return hops + 1

    def heads(self, hops: int) -> tuple[int, int]:
        """Return depths of two heads: one on encodings, one on all hops."""
        return 1, hops + 1


class ProgapRepresentation(ReleasedHops):
    """`_hops` are the frozen x of earlier stages; `_newest_sum` is the release of this one."""

    _newest_sum: Tensor | None = None  # (num_nodes, message_width), data

    def begin_stage(self, stage: int) -> None:
        """Freeze the stage before, and release the sums of its output."""
        if stage > 0:
            self._hops.append(self._newest_of_all())
            self._newest_sum = self._release(self._hops[-1])

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """(B, message_width, hops + 1)."""
        rows = torch.from_numpy(nodes)
        return pad_hops([*(hop[rows] for hop in self._hops), self._newest(nodes)], depth=self.depth)

    def _newest(self, nodes: Nodes) -> Tensor:
        if self._newest_sum is None:
            return self._encode(nodes)
        rows = torch.from_numpy(nodes)
        newest: Tensor = self._network.bases[len(self._hops) - 1](self._newest_sum[rows])
        return newest

    @torch.no_grad()
    def _newest_of_all(self) -> Tensor:
        self._network.eval()
        return torch.cat([self._newest(nodes) for nodes in self._blocks()])


class ProgapMethod(ReleasedHopsMethod):
    """One hop is released per stage."""

    name = "progap"
    representation = ProgapRepresentation
    activates_in_head = False

    def bases(self, hops: int) -> int:
        """Return one per released hop; the encoder is the base of hop 0."""
        return hops

    def heads(self, hops: int) -> range:
        """Return one depth per stage: all hops so far."""
        return range(1, hops + 2)
