"""The certified representation: released sums as data, and heads trained on top of them.

begin_stage(k):  freeze stage k - 1;  if k = 1, run the probe (`probe`);
                 messages (`message_builder`)  ->  z_k = door.release(messages), charged once, for
                 all nodes  ->  matched to the degree of query nodes (`query_nodes`)
embed(nodes):    logits of every stage so far, later ones zero; then member offsets

Everything except `door.release` works on edge-free data and released values. Centres and scales are
fitted on the training graph and used on every other graph (`fitted_constants`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.engine.engine import current_engine
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.certified.fitted_constants import FittedConstants
from vesper.method.certified.message_builder import MessageBuilder
from vesper.method.certified.probe import Probe, ProbeSettings
from vesper.method.certified.probe_decision import decide
from vesper.method.certified.probe_sums import received_in_probe
from vesper.method.certified.query_nodes import DegreeMatching, degree_ratio
from vesper.method.certified.relay import split_noise
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
"""Nodes that are read at a time in a pass over all nodes."""
ROWS_PER_SCALE_BLOCK = 1 << 17
"""Nodes at a time for column scales: most graphs are one block."""


class StagedRepresentation(StatelessRepresentation):
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
        self._probe = Probe(probe_settings, self._inputs, self._constants)
        self._messages = MessageBuilder(
            self._inputs,
            self._constants,
            aggregator=aggregator,
            settings=probe_settings,
            hops=extractor.hops,
        )
        self._stage = 0
        self._logits: list[Tensor] = []  # per stage: (num_nodes, num_classes), frozen
        self._released: list[Tensor] = []  # per hop: (num_nodes, message_width)
        self._degree_matching = DegreeMatching(self._num_nodes)
        self._scales: list[Tensor] = []  # per hop, and of their sum: (message_width,)

    @property
    def module(self) -> nn.Module:
        """Encoder and heads."""
        return self._extractor

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Set the labels of training nodes, and the nodes that predictions are wanted for."""
        self._messages.set_labels(nodes, label_posteriors, query_nodes)

    def begin_stage(self, stage: int) -> None:
        """Freeze the stage before and release its messages."""
        if stage > 0:
            self._logits.append(self._logits_of_all())
            if stage == 1:
                self._inputs.clear()  # later heads read the logits of stage 0 instead
                self._run_probe()
            self._released.append(self._release(stage))
            self._match_degrees(stage)
            self._scales = self._column_scales(stage)
        self._stage = stage

    def _run_probe(self) -> None:
        """Decide what messages contain, from one release."""
        probe, roles = self._probe, self._messages.roles
        if not probe.is_needed(roles):
            return
        messages = probe.messages(roles, self._messages.beliefs(self._logits[0]))
        release = probe.run(self._door, messages, roles)
        del messages  # as large as the release
        findings = decide(
            release,
            probe.settings,
            next_noise_std=self._noise_stds[0],
            can_relay=self._aggregator == "gin",
            use_labels=self._constants.use_labels,
        )
        self._messages.adopt(findings)
        if findings.use_labels and findings.content is not None:
            self._messages.set_received_sums(received_in_probe(release))

    def _release(self, stage: int) -> Tensor:
        """Release the sums before a stage, and read them: (num_nodes, message_width)."""
        builder, noise_std = self._messages, self._noise_stds[stage - 1]
        beliefs = builder.beliefs(self._logits[-1])
        centre = self._constants.centres.setdefault(str(stage), beliefs.mean(dim=0))
        aggregation = choose_aggregation(
            self._aggregator,
            min_degree=self._min_degree,
            logits=self._logits[-1],
            centre=centre,
        )
        if builder.needs_relay_input(stage):
            input_noise_std, noise_std = split_noise(noise_std)
            class_messages = builder.class_messages(beliefs, centre=centre)
            sums = self._door.release(class_messages.numpy(), noise_std=input_noise_std)
            builder.add_relay_input(torch.from_numpy(sums))
        messages = builder.messages(stage, beliefs, centre=centre, released=self._released)
        del beliefs  # as large as what is released
        z = self._door.release(messages.numpy(), noise_std=noise_std, aggregation=aggregation)
        del messages
        released = builder.read(torch.from_numpy(z), noise_std=noise_std)
        if self._aggregator == "mean":
            share = builder.degree_share
            return mean_from_sums(released, degree_share=share, noise_std=noise_std)
        return released

    def _match_degrees(self, stage: int) -> None:
        """Scale the newest sums of training nodes to the degree of query nodes."""
        noise_std, newest = self._noise_stds[stage - 1], self._released[-1]
        if stage == 1:
            if self._constants.degree_ratio is None:
                self._constants.degree_ratio = self._degree_ratio(newest, noise_std=noise_std)
            # On another graph, where no query nodes are set, sums stay as they are.
            has_query_nodes = len(self._messages.roles.query_nodes) > 0
            ratio = self._constants.degree_ratio if has_query_nodes else 1.0
            self._degree_matching.start(ratio, self._messages.roles.query_nodes)
        self._degree_matching.add_release(newest, noise_std=noise_std)

    def _degree_ratio(self, released: Tensor, *, noise_std: float) -> float:
        """Mean degree of query nodes over that of training nodes, where it is clearly small."""
        share, roles = self._messages.degree_share, self._messages.roles
        if self._aggregator != "gin" or share == 0 or self._constants.relay:
            return 1.0  # sums contain no degree
        return degree_ratio(
            released[:, 0] / share,
            roles.labelled_nodes,
            roles.query_nodes,
            noise_std=noise_std / share,
        )

    def _column_scales(self, stage: int) -> list[Tensor]:
        """Scales of each hop so far and, from the second on, of their sum."""
        parts = {f"hop{k}": [z] for k, z in enumerate(self._released)}
        if stage > 1:
            parts[f"sum{stage}"] = self._released
        scales = self._constants.column_scales
        for name, part in parts.items():
            if name not in scales:
                scales[name] = column_scales(part)
        return [scales[name] for name in parts]

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the scaling of features, the decisions of the probe, and centres and scales."""
        scaling = with_prefix("scaling", self._inputs.scaling.fitted_arrays())
        return scaling | with_prefix("constants", self._constants.arrays())

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Use what was fitted on the training graph."""
        self._inputs.scaling.load_fitted(without_prefix("scaling", arrays))
        self._constants.load(without_prefix("constants", arrays))

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Return logits of each stage and member offsets: (B, num_classes, hops + members)."""
        # Times one, so that its gradient has the same memory layout for any number of hops, and
        # sums over it are equal to the bit.
        logits_by_member = self._member_logits(nodes) * 1.0  # (B, num_classes, members)
        newest = mean_logits(logits_by_member)
        rows = torch.from_numpy(nodes)
        stages = [logits[rows] for logits in self._logits] + [newest]
        stages += [torch.zeros_like(newest)] * (self._extractor.hops - self._stage)
        return torch.cat(
            [torch.stack(stages, dim=2), member_offsets(logits_by_member, newest)], dim=2
        )

    def columns(self) -> ExportColumns:
        """Return the content of an export: all releases and logits so far, of all nodes."""
        logits = [*self._logits, self._logits_of_all()]
        columns = columns_of("stage0", logits[0].numpy())
        share = self._messages.degree_share if self._aggregator in READS_DEGREES else None
        for hop, z in enumerate(self._released, start=1):
            columns |= columns_of_sums(hop, z.numpy(), degree_share=share)
            columns |= columns_of(f"stage{hop}", logits[hop].numpy())
        return columns

    def _member_logits(self, nodes: Nodes) -> Tensor:
        """Logits of each member in the present stage: (B, num_classes, members)."""
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

    In blocks: on a large graph there may be no memory for a second copy of a release.
    """
    num_nodes, width = released[0].shape
    mean = torch.zeros(width)
    for start in range(0, num_nodes, ROWS_PER_SCALE_BLOCK):
        whole = torch.stack([z[start : start + ROWS_PER_SCALE_BLOCK] for z in released]).sum(dim=0)
        mean += whole.square().mean(dim=0) * (len(whole) / num_nodes)
    return mean.sqrt() + 1e-6
