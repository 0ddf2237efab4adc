"""The probe: one release before the first hop that decides what messages contain.

    message[u]  = (p [u is labelled],  a,  b class row of u,  c unit(components of u's features))
    released[v] = sum of messages over the neighbours of v + noise

    1. `messages` are built first, from features, shared labels and stage 0;
    2. `run` releases their sums, charged like any release;
    3. `probe_decision.decide` reads them and returns the findings.

The decision is made once, on the training graph, and holds on every other graph.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import VesperError
from vesper.mechanism.door import Door
from vesper.method.certified.fitted_constants import FittedConstants
from vesper.method.certified.probe_size import NODES_PER_COLUMN, PartLengths, feature_evidence
from vesper.method.certified.query_nodes import label_reach_messages
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import class_rows
from vesper.model.principal_components import ComponentProjection, components_of
from vesper.party.representation import NO_NODES, Nodes

ROWS_PER_BLOCK = 1 << 14
"""Nodes whose messages are built at a time."""

Rows = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """What the probe takes from the noise plan and the config."""

    noise_std: float | None
    """Noise of its release; None: there is no probe."""
    content_share: float
    """Share of the budget for deciding content; 0: only label reach is measured."""
    degree_share: float
    """Constant part of a message, unless the probe finds a better one."""
    degree_share_is_fixed: bool = False
    """Whether the user set the degree share, so that the probe leaves it as it is."""
    ordered: bool = False
    """Whether classes are bins of numbers, in the order of these."""


@dataclass(frozen=True, eq=False)
class NodeRoles:
    """Labelled nodes with their label posteriors, and query nodes."""

    labelled_nodes: Nodes
    """Training nodes whose labels are shared."""
    label_posteriors: Tensor  # (labelled nodes, num_classes)
    query_nodes: Nodes
    """Nodes that predictions are wanted for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeRelease:
    """Released sums of probe messages, and what is needed to read them."""

    rows: Rows  # (num_nodes, 1), or (num_nodes, 2 + num_classes + components)
    roles: NodeRoles
    own_components: Rows  # (labelled nodes, components), as they are in messages
    lengths: PartLengths
    noise_std: float

    @property
    def num_classes(self) -> int:
        """Number of class columns."""
        return self.roles.label_posteriors.shape[1]

    @property
    def has_content(self) -> bool:
        """Whether more than label reach was measured."""
        return bool(self.rows.shape[1] > 1)


NO_ROLES = NodeRoles(NO_NODES, torch.zeros(0, 0), NO_NODES)


class Probe:
    """Builds the messages of the probe and releases their sums.

    Args:
        settings: noise, and share of the budget.
        inputs: features of all nodes.
        constants: hold the components of features once they are fitted.
    """

    def __init__(self, settings: ProbeSettings, inputs: Inputs, constants: FittedConstants) -> None:
        self.settings, self._inputs, self._constants = settings, inputs, constants
        self._lengths = PartLengths.for_share(settings.content_share)

    def is_needed(self, roles: NodeRoles) -> bool:
        """Whether there is budget for a probe, and something that it could decide."""
        if self.settings.noise_std is None or not len(roles.labelled_nodes):
            return False
        return self.settings.content_share > 0 or bool(len(roles.query_nodes))

    def messages(self, roles: NodeRoles, beliefs: Tensor) -> Rows:
        """Build the messages of all nodes, rows of norm at most 1.

        Args:
            roles: which nodes are labelled.
            beliefs: (num_nodes, num_classes).
        """
        if self.settings.content_share == 0:
            return label_reach_messages(roles.labelled_nodes, self._inputs.num_nodes)
        if self._constants.components is None:
            self._constants.components = self._components(roles)
        along = ComponentProjection(self._inputs, self._constants.components)
        return probe_messages(roles.labelled_nodes, beliefs, along, lengths=self._lengths)

    def run(self, door: Door, messages: Rows, roles: NodeRoles) -> ProbeRelease:
        """Release the sums of the messages.

        Raises:
            VesperError: the release was stored by an earlier version, with other columns.
        """
        assert self.settings.noise_std is not None
        first = 2 + roles.label_posteriors.shape[1]
        own = messages[roles.labelled_nodes, first:] / np.float32(self._lengths.features)
        released = door.release(messages, noise_std=self.settings.noise_std)
        if released.shape != messages.shape:
            raise VesperError(
                f"the probe's release: expected {messages.shape[1]} columns, the stored one has "
                f"{released.shape[1]} and is of an earlier version; start a new run"
            )
        return ProbeRelease(
            rows=released,
            roles=roles,
            own_components=own,
            lengths=self._lengths,
            noise_std=self.settings.noise_std,
        )

    def _components(self, roles: NodeRoles) -> Tensor:
        num_train, num_classes = roles.label_posteriors.shape
        evidence = feature_evidence(
            num_train, lengths=self._lengths, noise_std=self.settings.noise_std or 0.0
        )
        max_columns = num_train // NODES_PER_COLUMN - num_classes
        return components_of(self._inputs, evidence=evidence, max_columns=max_columns)


def probe_messages(
    labelled_nodes: Nodes, beliefs: Tensor, along: ComponentProjection, *, lengths: PartLengths
) -> Rows:
    """Build messages: (num_nodes, 2 + num_classes + components), rows of norm at most 1.

    Args:
        labelled_nodes: nodes that label reach counts.
        beliefs: (num_nodes, num_classes).
        along: gives the positions of nodes along the components of features.
        lengths: norm of each part.
    """
    num_nodes, num_classes = beliefs.shape
    centre = beliefs.mean(dim=0)
    messages = np.empty((num_nodes, 2 + num_classes + along.width), dtype=np.float32)
    # In blocks: there may be no memory for a second copy of all beliefs.
    for start in range(0, num_nodes, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        class_part = class_rows(beliefs[rows], centre=centre).numpy()
        messages[rows, 2 : 2 + num_classes] = lengths.classes * class_part
        messages[rows, 2 + num_classes :] = lengths.features * along(rows).numpy()
    messages[:, 0] = lengths.label_reach * label_reach_messages(labelled_nodes, num_nodes)[:, 0]
    messages[:, 1] = lengths.degree
    return messages
