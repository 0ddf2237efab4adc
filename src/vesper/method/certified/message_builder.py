"""What nodes of the certified plan say before each hop.

    beliefs   = labels of training nodes where lent and worth saying, posteriors elsewhere
    messages  = of the beliefs, or of votes where features tell more (the trial), or of what was
                heard, where neither tells anything (`relay`)

No edge is read but through the door: by what is asked before the first hop (`enquiry`), and where
an only hop hands on, by `release_relay_input`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.mechanism.door import Door
from vesper.method.base import FittedConstants
from vesper.method.certified.feature_projection import FeatureProjection, projection_length
from vesper.method.certified.probe import NodeRoles, ProbeRunner, ProbeSettings
from vesper.method.certified.probe_sums import PendingProbeSums
from vesper.method.certified.relay import Relay, unscaled_sums
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import (
    bayes_update,
    class_messages,
    class_rows,
    damp_by_degree,
    positive_part,
    with_degree,
)
from vesper.party.representation import NO_NODES, Nodes

ROWS_PER_BLOCK = 1 << 14
"""Nodes at a time."""


class MessageBuilder:
    """Who speaks, and what all nodes say.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        aggregator: by name.
        probe_settings: what may be asked before.
        hops: how many there will be.
    """

    def __init__(
        self,
        inputs: Inputs,
        constants: FittedConstants,
        *,
        aggregator: str,
        probe_settings: ProbeSettings,
        hops: int = 1,
    ) -> None:
        self._constants, self._aggregator = constants, aggregator
        self._probe_settings = probe_settings
        self._roles = NodeRoles(NO_NODES, torch.zeros(0, 0), NO_NODES)
        self._probe_sums = PendingProbeSums()
        self.relay = Relay(constants, hops=hops)
        self._feature_projection = FeatureProjection(
            inputs, constants, length=projection_length(ordered=probe_settings.ordered)
        )
        self._probe = ProbeRunner(
            inputs, constants, self._feature_projection, self.relay, probe_settings
        )

    @property
    def degree_share(self) -> float:
        """The part of a message that is its constant."""
        constant = self._constants.get("degree_share")
        return self._probe_settings.degree_share if constant is None else float(constant)

    @property
    def roles(self) -> NodeRoles:
        """Who speaks, and who will be asked about."""
        return self._roles

    def set_labels(
        self, labelled_nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes
    ) -> None:
        """Take the beliefs of training nodes, and who will be asked for."""
        self._roles = NodeRoles(
            labelled_nodes, torch.from_numpy(label_posteriors.copy()), query_nodes
        )

    def run_probe(self, door: Door, logits: Tensor, *, next_noise_std: float) -> None:
        """Find out what is worth saying, and whether labels are among it.

        Args:
            door: to the edges.
            logits: (num_nodes, num_classes) of the stage before.
            next_noise_std: of the first hop.
        """
        findings = self._probe.run(
            door,
            self._roles,
            partial(self.beliefs, logits),
            next_noise_std=next_noise_std,
            can_relay=self._aggregator == "gin",
        )
        if findings is None:
            return
        if findings.sums is not None and self.relay.is_active:
            self.relay.set_weights(findings.sums.labelled_neighbors)
        # Of what this graph was trained with before, if it was: the first hop will say the same.
        uses_labels = (
            self._constants.get("use_labels") and self._constants.get("projection") is None
        )
        self._probe_sums.put(findings.sums if uses_labels else None)

    def beliefs(self, logits: Tensor) -> Tensor:
        """What nodes hold likely, or have been told: (num_nodes, num_classes)."""
        beliefs = logits.softmax(dim=1)
        use_labels = self._constants.get("use_labels")
        if use_labels is None or use_labels:
            labelled_nodes = self._roles.labelled_nodes
            beliefs[labelled_nodes] = bayes_update(
                beliefs[labelled_nodes], self._roles.label_posteriors
            )
        return beliefs

    def messages(
        self, stage: int, beliefs: Tensor, *, centre: Tensor, released: Sequence[Tensor]
    ) -> Tensor:
        """What all nodes say before a stage: (num_nodes, num_classes + 1).

        Args:
            stage: from 1 on.
            beliefs: (num_nodes, num_classes).
            centre: (num_classes,) what counts as the mean belief.
            released: of the hops before, (num_nodes, num_classes + 1) each.
        """
        if stage == 1 and self.relay.is_active:
            self.relay.set_own_rows(class_rows(beliefs, centre=centre))
        if self.relay.applies_before(stage):
            share = self.degree_share
            sums = (
                unscaled_sums(released, degree_share=share) if released else self._probe_sums.sums
            )
            return self.relay.messages(sums, degree_share=share)
        coefficients = self._constants.get("projection")
        repeated = self._constants.get("project_later_hops")  # with a fresh draw of noise
        if coefficients is not None and (stage == 1 or repeated):
            projection = self._feature_projection.project(coefficients)
            messages = with_degree(projection, degree_share=self.degree_share)
        else:
            messages = self._class_messages(beliefs, centre)
        if self._aggregator == "gcn" and released:
            degrees = torch.stack([z[:, 0] for z in released]).mean(dim=0) / self.degree_share
            median = self._constants.fit_once(f"median{stage}", degrees.median)
            messages = damp_by_degree(messages, degrees, median=median)
        return positive_part(messages) if self._aggregator == "max" else messages

    def release_relay_input(
        self, door: Door, beliefs: Tensor, *, centre: Tensor, noise_std: float
    ) -> float:
        """Hear classes before the only hop, where they are handed on and no trial has heard them.

        Args:
            door: to the edges.
            beliefs: (num_nodes, num_classes).
            centre: (num_classes,) what counts as the mean belief.
            noise_std: that was planned for the hop.

        Returns:
            The noise that is left for the hop.
        """
        if not self.relay.applies_before(1) or self._probe_sums.has_sums:
            return noise_std
        messages = self._class_messages(beliefs, centre)
        share = self.degree_share
        return self._probe_sums.release_relay_input(
            door, messages, degree_share=share, noise_std=noise_std
        )

    def _class_messages(self, beliefs: Tensor, centre: Tensor) -> Tensor:
        messages = torch.empty(len(beliefs), beliefs.shape[1] + 1)
        for start in range(0, len(beliefs), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            messages[rows] = class_messages(
                beliefs[rows], degree_share=self.degree_share, centre=centre
            )
        return messages

    def add_probe_sums(self, released: Tensor, *, noise_std: float) -> Tensor:
        """Add to the first hop what the trial heard of the same messages.

        Of what was handed on, what a node had said itself is taken off.
        """
        share = self.degree_share
        read = self.relay.read_sums(
            released,
            labelled_nodes=self._roles.labelled_nodes,
            query_nodes=self._roles.query_nodes,
            noise_std=noise_std,
        )
        if read is None:
            return self._probe_sums.combined_with(released, degree_share=share, noise_std=noise_std)
        self._probe_sums.put(None)
        return read
