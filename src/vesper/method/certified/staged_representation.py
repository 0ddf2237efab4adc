"""The certified representation: released sums as data, heads that learn on top of them.

begin_stage(k):  z_k = door.release(what nodes say before stage k)      charged there, once for all
embed(nodes):    logits of every stage so far, later ones are zero; then how members differ

What nodes say is in `saying`. Everything but `door.release` works on edge-free data and released
values. Scales and centres are fitted on the graph of training and kept to on every other
(`keep_to`): the model is one function.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.engine.engine import in_use
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.base import Fitted
from vesper.method.certified.degree_matching import Thinned, ratio_of
from vesper.method.certified.message_builder import Saying
from vesper.method.certified.probe import Terms
from vesper.method.export_columns import Columns, columns_of, columns_of_sums
from vesper.method.options import TELLS_DEGREES, aggregation_of
from vesper.model.edge_free_inference import edge_free_of_all
from vesper.model.ensemble import consensus_of, deviations_of
from vesper.model.feature_scaling import Inputs, Scaling
from vesper.model.message_rows import mean_of
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.party.representation import NOBODY, Forgetful, Nodes
from vesper.party.state import below, with_prefix

ROWS = 1 << 14
"""Nodes at a time when all of them are needed."""
ROWS_OF_A_SIZE = 1 << 17
"""Nodes at a time for sizes of columns: most graphs are one block."""


class ProgressiveRepresentation(Forgetful):
    """Stage 0 learns from features alone; each later stage adds one release."""

    def __init__(
        self,
        extractor: PrivateRepresentationExtractor,
        *,
        scaling: Scaling,
        features: Features,
        door: Door,
        noise_stds: Sequence[float],
        terms: Terms,
        aggregator: str,
        min_degree: int,
    ) -> None:
        self._extractor, self._num_nodes = extractor, len(features)
        self._inputs = Inputs(features, scaling)
        self._door, self._noise_stds = door, noise_stds
        self._aggregator, self._min_degree = aggregator, min_degree
        self._fitted = Fitted()
        self._saying = Saying(
            self._inputs,
            self._fitted,
            aggregator=aggregator,
            terms=terms,
            hops=extractor.hops,
        )
        self._stage = 0
        self._logits: list[Tensor] = []  # a stage: (num_nodes, num_classes), frozen
        self._released: list[Tensor] = []  # a hop: (num_nodes, message_width)
        self._thinned = Thinned(self._num_nodes)
        self._scales: list[Tensor] = []  # a hop, and their sum: (message_width,)

    @property
    def module(self) -> nn.Module:
        """Encoder and heads."""
        return self._extractor

    def hear(self, nodes: Nodes, voices: NDArray[np.float32], asked: Nodes = NOBODY) -> None:
        """Take the beliefs of training nodes, and who will be asked for."""
        self._saying.hear(nodes, voices, asked)

    def begin_stage(self, stage: int) -> None:
        """Freeze the stage before and release its messages."""
        if stage > 0:
            self._logits.append(self._newest_of_all())
            if stage == 1:
                self._inputs.forget()  # later heads read the logits of stage 0 instead
                self._saying.ask(self._door, self._logits[0], next_noise_std=self._noise_stds[0])
            noise_std = self._noise_stds[stage - 1]
            self._released.append(self._release(stage, noise_std=noise_std))
            self._thin(stage, noise_std=noise_std)
            self._scales = [self._size(f"hop{k}", [each]) for k, each in enumerate(self._released)]
            if stage > 1:
                self._scales.append(self._size(f"sum{stage}", self._released))
        self._stage = stage

    def _release(self, stage: int, *, noise_std: float) -> Tensor:
        """What is heard of neighbours in a stage: (num_nodes, message_width)."""
        beliefs = self._saying.beliefs(self._logits[-1])
        centre = self._fitted.once(f"centre{stage}", partial(torch.mean, beliefs, dim=0))
        aggregation = aggregation_of(
            self._aggregator,
            min_degree=self._min_degree,
            logits=self._logits[-1],
            centre=centre,
        )
        if stage == 1:
            noise_std = self._saying.listen(self._door, beliefs, centre=centre, noise_std=noise_std)
        messages = self._saying.messages(stage, beliefs, centre=centre, released=self._released)
        del beliefs  # as large as what is released
        z = self._door.release(messages.numpy(), noise_std=noise_std, aggregation=aggregation)
        del messages
        released = self._saying.joined(torch.from_numpy(z), noise_std=noise_std)
        if self._aggregator == "mean":
            share = self._saying.degree_share
            return mean_of(released, degree_share=share, noise_std=noise_std)
        return released

    def _thin(self, stage: int, *, noise_std: float) -> None:
        """Let training nodes hear as little as those who will be asked about."""
        newest = self._released[-1]
        if stage == 1:
            asked = self._saying.audience.asked
            self._thinned.begin(self._ratio_of(newest, noise_std=noise_std), asked)
        self._thinned.add(newest, noise_std=noise_std)

    def _ratio_of(self, released: Tensor, *, noise_std: float) -> float:
        """Of degrees of those who will be asked about to those of training nodes, where small."""
        share, audience = self._saying.degree_share, self._saying.audience
        if self._aggregator != "gin" or share == 0 or self._saying.handing_on.is_found:
            return 1.0  # sums tell no degrees
        if not len(audience.asked):
            return 1.0  # another graph: its nodes hear what they hear

        def fit() -> Tensor:
            degrees, both = released[:, 0] / share, (audience.speakers, audience.asked)
            return torch.tensor(
                ratio_of(degrees, *both, noise_std=noise_std / share), dtype=torch.float64
            )

        return float(self._fitted.once("thinned", fit))

    def fitted(self) -> dict[str, NDArray[Any]]:
        """How features are scaled, what the trial has found, centres of beliefs, sizes of sums."""
        scaling = with_prefix("scaling", self._inputs.scaling.fitted())
        return scaling | with_prefix("sums", self._fitted.arrays())

    def keep_to(self, fitted: dict[str, NDArray[Any]]) -> None:
        """Take them over."""
        self._inputs.scaling.keep_to(below("scaling", fitted))
        self._fitted.keep_to(below("sums", fitted))

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Logits of the nodes, and how members differ: (B, num_classes, hops + members)."""
        # Times one: its gradient then lies the same in memory for any number of hops, and sums over
        # it come out the same to the bit.
        opinions = self._opinions(nodes) * 1.0  # (B, num_classes, members)
        newest = consensus_of(opinions)
        rows = torch.from_numpy(nodes)
        stages = [logits[rows] for logits in self._logits] + [newest]
        stages += [torch.zeros_like(newest)] * (self._extractor.hops - self._stage)
        return torch.cat([torch.stack(stages, dim=2), deviations_of(opinions, newest)], dim=2)

    def columns(self) -> Columns:
        """All releases and the logits of all stages so far, of all nodes: what may leave."""
        logits = [*self._logits, self._newest_of_all()]
        columns = columns_of("stage0", logits[0].numpy())
        share = self._saying.degree_share if self._aggregator in TELLS_DEGREES else None
        for hop, z in enumerate(self._released, start=1):
            columns |= columns_of_sums(hop, z.numpy(), degree_share=share)
            columns |= columns_of(f"stage{hop}", logits[hop].numpy())
        return columns

    def _size(self, name: str, released: Sequence[Tensor]) -> Tensor:
        return self._fitted.once(name, partial(size_of, released))

    def _opinions(self, nodes: Nodes) -> Tensor:
        """Newest logits of each member: (B, num_classes, members)."""
        if self._stage == 0:
            return self._extractor.edge_free(self._inputs.of(nodes))
        released = [self._thinned.rows(hop, z, nodes) for hop, z in enumerate(self._released)]
        first = self._logits[0][torch.from_numpy(nodes)]
        return self._extractor.with_releases(first, released, self._scales)

    @torch.no_grad()
    def _newest_of_all(self) -> Tensor:
        self._extractor.eval()
        engine = in_use()
        if engine is not None and self._stage == 0:  # later heads are small, their inputs are here
            return edge_free_of_all(engine, self._extractor, self._inputs)
        logits = torch.empty(self._num_nodes, self._extractor.num_classes)
        for nodes in self._blocks():
            logits[nodes[0] : nodes[-1] + 1] = consensus_of(self._opinions(nodes))
        return logits  # (num_nodes, num_classes)

    def _blocks(self) -> Iterator[Nodes]:
        for start in range(0, self._num_nodes, ROWS):
            yield np.arange(start, min(start + ROWS, self._num_nodes))


def size_of(released: Sequence[Tensor]) -> Tensor:
    """Root mean square of each column of the sum of releases: all (num_nodes, width) -> (width,).

    In blocks: a second copy of a release is the most that a large graph does not have room for.
    """
    num_nodes, width = released[0].shape
    mean = torch.zeros(width)
    for start in range(0, num_nodes, ROWS_OF_A_SIZE):
        whole = torch.stack([z[start : start + ROWS_OF_A_SIZE] for z in released]).sum(dim=0)
        mean += whole.square().mean(dim=0) * (len(whole) / num_nodes)
    return mean.sqrt() + 1e-6
