"""What nodes of the certified plan contribute to their neighbours' sums before each hop.

    beliefs   = labels of training nodes where they are shared and useful, posteriors elsewhere
    messages  = (c, sqrt(1 - c^2) content),    content = class rows of the beliefs,
                feature projections, or received sums (`relay`): the probe decides which

Nothing here reads an edge: messages are functions of features, shared labels and releases.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import VesperError
from vesper.method.certified.feature_projection import feature_projection
from vesper.method.certified.fitted_constants import FittedConstants
from vesper.method.certified.probe import NO_ROLES, NodeRoles, ProbeSettings
from vesper.method.certified.probe_decision import ProbeFindings
from vesper.method.certified.probe_sums import ReceivedSums, received_in_hop, unscaled_sums
from vesper.method.certified.relay import Relay
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import (
    bayes_update,
    class_messages,
    class_rows,
    damp_by_degree,
    positive_part,
    with_degree,
)
from vesper.party.representation import Nodes

ROWS_PER_BLOCK = 1 << 14
"""Nodes whose messages are built at a time."""


class MessageBuilder:
    """Builds the messages of every hop, and reads what they sum to.

    Args:
        inputs: features of all nodes.
        constants: what the probe decided, and centres and scales.
        aggregator: name of the aggregation.
        settings: the default degree share, and whether labels are numbers.
        hops: number of hops.
    """

    def __init__(
        self,
        inputs: Inputs,
        constants: FittedConstants,
        *,
        aggregator: str,
        settings: ProbeSettings,
        hops: int = 1,
    ) -> None:
        self._inputs, self._constants, self._aggregator = inputs, constants, aggregator
        self._settings = settings
        self._relay = Relay(constants, hops=hops)
        self._received: ReceivedSums | None = None  # until the first hop uses them
        self._weights: Tensor | None = None  # (num_nodes,) see `Relay.messages`
        self.roles = NO_ROLES

    @property
    def degree_share(self) -> float:
        """The constant part of a message."""
        found = self._constants.degree_share
        return self._settings.degree_share if found is None else found

    def set_labels(
        self, labelled_nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes
    ) -> None:
        """Set the nodes whose labels are shared, and the nodes that predictions are wanted for."""
        self.roles = NodeRoles(
            labelled_nodes, torch.from_numpy(label_posteriors.copy()), query_nodes
        )

    def adopt(self, findings: ProbeFindings) -> None:
        """Build messages as the probe decided; decisions of the training graph are not replaced."""
        constants, content = self._constants, findings.content
        if constants.use_labels is None:
            constants.use_labels = findings.use_labels
        if content is None or constants.is_probed:
            return
        constants.is_probed = True
        constants.relay = content.relay or None
        if not self._settings.degree_share_is_fixed:
            constants.degree_share = content.degree_share
        if content.projection is not None:
            constants.projection = content.projection
            constants.project_later_hops = content.project_later_hops

    def set_received_sums(self, received: ReceivedSums) -> None:
        """Use these sums in the first hop, if its messages contain the same classes."""
        if self._constants.relay:
            self._weights = received.labelled_neighbors
        if self._constants.use_labels and self._constants.projection is None:
            self._received = received

    def beliefs(self, logits: Tensor) -> Tensor:
        """Class probabilities of all nodes, with labels where they are used.

        (num_nodes, num_classes) -> (num_nodes, num_classes)
        """
        beliefs = logits.softmax(dim=1)
        if self._constants.use_labels in (None, True):
            labelled_nodes = self.roles.labelled_nodes
            beliefs[labelled_nodes] = bayes_update(
                beliefs[labelled_nodes], self.roles.label_posteriors
            )
        return beliefs

    def needs_relay_input(self, stage: int) -> bool:
        """Whether the hop before a stage has to pass on sums that have not been released yet."""
        return stage == 1 and self._relay.applies_before(stage) and self._received is None

    def add_relay_input(self, released: Tensor) -> None:
        """Set the sums of class messages to pass on: (num_nodes, 1 + num_classes)."""
        self._received = received_in_hop(released, degree_share=self.degree_share)

    def messages(
        self, stage: int, beliefs: Tensor, *, centre: Tensor, released: Sequence[Tensor]
    ) -> Tensor:
        """Build the messages of the hop before a stage: (num_nodes, num_classes + 1).

        Args:
            stage: from 1 on.
            beliefs: (num_nodes, num_classes).
            centre: (num_classes,) mean belief.
            released: earlier hops, (num_nodes, num_classes + 1) each.
        """
        if stage == 1 and self._constants.relay:
            self._relay.set_own_rows(class_rows(beliefs, centre=centre))
        if self._relay.applies_before(stage):
            return self._relay_messages(released)
        repeated = self._constants.project_later_hops  # with fresh noise
        if self._constants.projection is not None and (stage == 1 or repeated):
            rows = feature_projection(self._inputs, self._constants, ordered=self._settings.ordered)
            messages = with_degree(rows, degree_share=self.degree_share)
        else:
            messages = self.class_messages(beliefs, centre=centre)
        if self._aggregator == "gcn" and released:
            messages = self._damped(messages, stage, released)
        return positive_part(messages) if self._aggregator == "max" else messages

    def class_messages(self, beliefs: Tensor, *, centre: Tensor) -> Tensor:
        """Build messages of classes: (num_nodes, num_classes) -> (num_nodes, num_classes + 1)."""
        messages = torch.empty(len(beliefs), beliefs.shape[1] + 1)
        for start in range(0, len(beliefs), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            messages[rows] = class_messages(
                beliefs[rows], degree_share=self.degree_share, centre=centre
            )
        return messages

    def read(self, released: Tensor, *, noise_std: float) -> Tensor:
        """Read a hop: average it with the probe's sums, or remove what relays sent back.

        Args:
            released: (num_nodes, num_classes + 1).
            noise_std: noise of the hop.
        """
        received, self._received = self._received, None
        read = self._relay.read_sums(
            released,
            labelled_nodes=self.roles.labelled_nodes,
            query_nodes=self.roles.query_nodes,
            noise_std=noise_std,
        )
        if read is not None:
            return read
        if received is None:
            return released
        return received.combined_with(released, degree_share=self.degree_share, noise_std=noise_std)

    def _relay_messages(self, released: Sequence[Tensor]) -> Tensor:
        if released:
            sums = unscaled_sums(released[0], degree_share=self.degree_share)
        elif self._received is not None:
            sums = self._received.sums
        else:
            raise VesperError("there are no received sums to pass on; start a new run")
        weights = sums[:, 0] if self._weights is None else self._weights
        return self._relay.messages(sums, degree_share=self.degree_share, weights=weights)

    def _damped(self, messages: Tensor, stage: int, released: Sequence[Tensor]) -> Tensor:
        degrees = torch.stack([z[:, 0] for z in released]).mean(dim=0) / self.degree_share
        median = self._constants.median_degrees.setdefault(str(stage), degrees.median())
        return damp_by_degree(messages, degrees, median=median)
