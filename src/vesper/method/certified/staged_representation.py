"""The certified representation: released sums as data, heads that learn on top of them.

begin_stage(k):  z_k = door.release(what nodes say before stage k)      charged there, once for all
embed(nodes):    logits of every stage so far, later ones are zero; then how members differ

What nodes say is in `saying`. Everything but `door.release` works on edge-free data and released
values. Scales and centres are fitted on the graph of training and kept to on every other
(`load_fitted`): the model is one function.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.engine.engine import current_engine
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.base import FittedConstants
from vesper.method.certified.degree_matching import DegreeMatching, degree_ratio
from vesper.method.certified.message_builder import MessageBuilder
from vesper.method.certified.probe import ProbeSettings
from vesper.method.export_columns import ExportColumns, columns_of, columns_of_sums
from vesper.method.options import READS_DEGREES, choose_aggregation
from vesper.model.edge_free_inference import edge_free_logits_of_all
from vesper.model.ensemble import mean_logits, member_offsets
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.message_rows import mean_from_sums
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.party.representation import NO_NODES, Nodes, StatelessRepresentation
from vesper.party.state import with_prefix, without_prefix

ROWS_PER_BLOCK = 1 << 14
"""Nodes at a time when all of them are needed."""
ROWS_PER_SCALE_BLOCK = 1 << 17
"""Nodes at a time for sizes of columns: most graphs are one block."""


class ProgressiveRepresentation(StatelessRepresentation):
    """Stage 0 learns from features alone; each later stage adds one release."""

    def __init__(
        self,
        extractor: PrivateRepresentationExtractor,
        *,
        scaling: FeatureScaling,
        features: Features,
        door: Door,
        noise_stds: Sequence[float],
        probe_settings: ProbeSettings,
        aggregator: str,
        min_degree: int,
    ) -> None:
        self._extractor, self._num_nodes = extractor, len(features)
        self._inputs = Inputs(features, scaling)
        self._door, self._noise_stds = door, noise_stds
        self._aggregator, self._min_degree = aggregator, min_degree
        self._constants = FittedConstants()
        self._messages = MessageBuilder(
            self._inputs,
            self._constants,
            aggregator=aggregator,
            probe_settings=probe_settings,
            hops=extractor.hops,
        )
        self._stage = 0
        self._logits: list[Tensor] = []  # a stage: (num_nodes, num_classes), frozen
        self._released: list[Tensor] = []  # a hop: (num_nodes, message_width)
        self._degree_matching = DegreeMatching(self._num_nodes)
        self._scales: list[Tensor] = []  # a hop, and their sum: (message_width,)

    @property
    def module(self) -> nn.Module:
        """Encoder and heads."""
        return self._extractor

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Take the beliefs of training nodes, and who will be asked for."""
        self._messages.set_labels(nodes, label_posteriors, query_nodes)

    def begin_stage(self, stage: int) -> None:
        """Freeze the stage before and release its messages."""
        if stage > 0:
            self._logits.append(self._logits_of_all())
            if stage == 1:
                self._inputs.clear()  # later heads read the logits of stage 0 instead
                self._messages.run_probe(
                    self._door, self._logits[0], next_noise_std=self._noise_stds[0]
                )
            noise_std = self._noise_stds[stage - 1]
            self._released.append(self._release(stage, noise_std=noise_std))
            self._match_degrees(stage, noise_std=noise_std)
            self._scales = [
                self._column_scale(f"hop{k}", [each]) for k, each in enumerate(self._released)
            ]
            if stage > 1:
                self._scales.append(self._column_scale(f"sum{stage}", self._released))
        self._stage = stage

    def _release(self, stage: int, *, noise_std: float) -> Tensor:
        """What is heard of neighbours in a stage: (num_nodes, message_width)."""
        beliefs = self._messages.beliefs(self._logits[-1])
        centre = self._constants.fit_once(f"centre{stage}", partial(torch.mean, beliefs, dim=0))
        aggregation = choose_aggregation(
            self._aggregator,
            min_degree=self._min_degree,
            logits=self._logits[-1],
            centre=centre,
        )
        if stage == 1:
            noise_std = self._messages.release_relay_input(
                self._door, beliefs, centre=centre, noise_std=noise_std
            )
        messages = self._messages.messages(stage, beliefs, centre=centre, released=self._released)
        del beliefs  # as large as what is released
        z = self._door.release(messages.numpy(), noise_std=noise_std, aggregation=aggregation)
        del messages
        released = self._messages.add_probe_sums(torch.from_numpy(z), noise_std=noise_std)
        if self._aggregator == "mean":
            share = self._messages.degree_share
            return mean_from_sums(released, degree_share=share, noise_std=noise_std)
        return released

    def _match_degrees(self, stage: int, *, noise_std: float) -> None:
        """Let training nodes hear as little as those who will be asked about."""
        newest = self._released[-1]
        if stage == 1:
            query_nodes = self._messages.roles.query_nodes
            self._degree_matching.start(
                self._degree_ratio(newest, noise_std=noise_std), query_nodes
            )
        self._degree_matching.add_release(newest, noise_std=noise_std)

    def _degree_ratio(self, released: Tensor, *, noise_std: float) -> float:
        """Of degrees of those who will be asked about to those of training nodes, where small."""
        share, roles = self._messages.degree_share, self._messages.roles
        if self._aggregator != "gin" or share == 0 or self._messages.relay.is_active:
            return 1.0  # sums tell no degrees
        if not len(roles.query_nodes):
            return 1.0  # another graph: its nodes hear what they hear

        def fit() -> Tensor:
            degrees, both = released[:, 0] / share, (roles.labelled_nodes, roles.query_nodes)
            return torch.tensor(
                degree_ratio(degrees, *both, noise_std=noise_std / share), dtype=torch.float64
            )

        return float(self._constants.fit_once("degree_ratio", fit))

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """How features are scaled, what the trial has found, centres of beliefs, sizes of sums."""
        scaling = with_prefix("scaling", self._inputs.scaling.fitted_arrays())
        return scaling | with_prefix("constants", self._constants.arrays())

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take them over."""
        self._inputs.scaling.load_fitted(without_prefix("scaling", arrays))
        self._constants.load_fitted(without_prefix("constants", arrays))

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Logits of the nodes, and how members differ: (B, num_classes, hops + members)."""
        # Times one: its gradient then lies the same in memory for any number of hops, and sums over
        # it come out the same to the bit.
        logits_by_member = self._member_logits(nodes) * 1.0  # (B, num_classes, members)
        newest = mean_logits(logits_by_member)
        rows = torch.from_numpy(nodes)
        stages = [logits[rows] for logits in self._logits] + [newest]
        stages += [torch.zeros_like(newest)] * (self._extractor.hops - self._stage)
        return torch.cat(
            [torch.stack(stages, dim=2), member_offsets(logits_by_member, newest)], dim=2
        )

    def columns(self) -> ExportColumns:
        """All releases and the logits of all stages so far, of all nodes: what may leave."""
        logits = [*self._logits, self._logits_of_all()]
        columns = columns_of("stage0", logits[0].numpy())
        share = self._messages.degree_share if self._aggregator in READS_DEGREES else None
        for hop, z in enumerate(self._released, start=1):
            columns |= columns_of_sums(hop, z.numpy(), degree_share=share)
            columns |= columns_of(f"stage{hop}", logits[hop].numpy())
        return columns

    def _column_scale(self, name: str, released: Sequence[Tensor]) -> Tensor:
        return self._constants.fit_once(name, partial(column_scales, released))

    def _member_logits(self, nodes: Nodes) -> Tensor:
        """Newest logits of each member: (B, num_classes, members)."""
        if self._stage == 0:
            return self._extractor.edge_free_logits(self._inputs.rows(nodes))
        released = [
            self._degree_matching.rows(hop, z, nodes) for hop, z in enumerate(self._released)
        ]
        first = self._logits[0][torch.from_numpy(nodes)]
        return self._extractor.logits_with_releases(first, released, self._scales)

    @torch.no_grad()
    def _logits_of_all(self) -> Tensor:
        self._extractor.eval()
        engine = current_engine()
        if engine is not None and self._stage == 0:  # later heads are small, their inputs are here
            return edge_free_logits_of_all(engine, self._extractor, self._inputs)
        logits = torch.empty(self._num_nodes, self._extractor.num_classes)
        for nodes in self._blocks():
            logits[nodes[0] : nodes[-1] + 1] = mean_logits(self._member_logits(nodes))
        return logits  # (num_nodes, num_classes)

    def _blocks(self) -> Iterator[Nodes]:
        for start in range(0, self._num_nodes, ROWS_PER_BLOCK):
            yield np.arange(start, min(start + ROWS_PER_BLOCK, self._num_nodes))


def column_scales(released: Sequence[Tensor]) -> Tensor:
    """Root mean square of each column of the sum of releases: all (num_nodes, width) -> (width,).

    In blocks: a second copy of a release is the most that a large graph does not have room for.
    """
    num_nodes, width = released[0].shape
    mean = torch.zeros(width)
    for start in range(0, num_nodes, ROWS_PER_SCALE_BLOCK):
        whole = torch.stack([z[start : start + ROWS_PER_SCALE_BLOCK] for z in released]).sum(dim=0)
        mean += whole.square().mean(dim=0) * (len(whole) / num_nodes)
    return mean.sqrt() + 1e-6
