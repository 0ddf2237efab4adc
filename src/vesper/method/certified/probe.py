"""One release before the first hop, from which a run learns what its nodes should say.

    speak     do those who will be asked for hear speakers as training nodes do?    `label_reach`
    found     votes of features or classes, and how much of the degree?             `probe_decision`
    heard     sums of classes and degrees on the way: they are averaged into the first hop

All of it is post-processing of one release, charged as any other.

What a run asks before its first hop, and what it keeps of the answer.

    speak           labels of training nodes are worth saying
    degree_share    the part of a message that is its constant, unless it was asked for
    votes, again    what features vote for, where that tells more than classes; in later hops too
    handing on      neighbours say what they hear

Asked once and fitted together: on another graph the same is said.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import VesperError
from vesper.mechanism.door import Door
from vesper.method.base import FittedConstants
from vesper.method.certified.degree_matching import degree_ratio
from vesper.method.certified.evidence import residual_labels
from vesper.method.certified.feature_projection import FeatureProjection
from vesper.method.certified.label_reach import (
    LabelReach,
    label_reach,
    label_reach_by_degree,
    label_reach_messages,
)
from vesper.method.certified.probe_decision import (
    NODES_PER_COLUMN,
    ContentDecision,
    PartLengths,
    PartSums,
    decide_content,
    evidence_of,
)
from vesper.method.certified.probe_sums import ProbeSums
from vesper.method.certified.relay import Relay, are_separated
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import class_rows
from vesper.model.principal_components import ComponentProjection, components_of
from vesper.party.representation import Nodes

ROWS_PER_BLOCK = 1 << 14
"""Nodes at a time."""
CLEAR_ERRORS = 4.0
"""Errors above which a sum over all nodes is more than noise."""


@dataclass(frozen=True, eq=False)
class ProbeFindings:
    """What was learned; `decision` and `heard` where there was a trial."""

    use_labels: bool
    """Whether labels of training nodes are worth saying."""
    decision: ContentDecision | None = None
    sums: ProbeSums | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """Who speaks, who will be asked for, and what it may cost.

    Args:
        speakers: training nodes whose labels are lent.
        label_posteriors: (speakers, num_classes) these.
        query_nodes: nodes that predictions are wanted for.
        noise_std: of the release.
        next_noise_std: of the hop after it.
        ordered: classes are bins of numbers, in their order.
    """

    labelled_nodes: Nodes
    label_posteriors: NDArray[np.float32]
    query_nodes: Nodes
    noise_std: float
    next_noise_std: float
    ordered: bool = False

    def run_label_reach(self, door: Door, *, num_nodes: int) -> ProbeFindings:
        """Ask who hears speakers, and nothing else."""
        released = door.release(
            label_reach_messages(self.labelled_nodes, num_nodes), noise_std=self.noise_std
        )
        return ProbeFindings(use_labels=self._label_reach(released[:, 0], length=1.0).similar)

    def run(
        self,
        door: Door,
        make_messages: Callable[[], NDArray[np.float32]],
        *,
        share: float,
        degree_share: float,
        use_labels: bool | None = None,
        can_relay: bool = False,
    ) -> ProbeFindings:
        """Ask that, and what is worth saying.

        Args:
            door: to the edges.
            make_messages: makes the messages of all nodes (`probe_messages`).
            share: of the budget that the trial takes.
            degree_share: where nothing else is found.
            use_labels: what was found before about this graph, if it was.
            can_relay: neighbours may say what they hear.
        """
        lengths, num_classes = PartLengths.for_share(share), self.label_posteriors.shape[1]
        messages = make_messages()
        own = messages[self.labelled_nodes, 2 + num_classes :] / np.float32(lengths.features)
        released = door.release(messages, noise_std=self.noise_std)
        if released.shape != messages.shape:
            raise VesperError(
                f"the probe release: expected one of {messages.shape[1]} "
                f"columns, the stored one has {released.shape[1]} and is of an earlier version; "
                f"start a new run"
            )
        del messages  # as large as what was heard
        reach = self._label_reach(released[:, 0], length=lengths.label_reach)
        if not reach.similar:
            reach = self._label_reach_by_degree(released[:, :2], lengths) or reach
        reach_is_lower = reach.lower if use_labels is None else not use_labels
        use_labels = reach.similar if use_labels is None else use_labels
        if reach_is_lower:
            return ProbeFindings(
                use_labels=False
            )  # classes in it were labels, which nobody will say
        at_labelled_nodes = released[self.labelled_nodes].astype(np.float64)
        parts = PartSums(
            degree=at_labelled_nodes[:, 1:2],
            classes=at_labelled_nodes[:, 2 : 2 + num_classes],
            features=at_labelled_nodes[:, 2 + num_classes :],
            noise_std=self.noise_std,
        )
        decision = decide_content(
            residual_labels(self._labels(), own),
            parts,
            lengths=lengths,
            next_noise_std=self.next_noise_std,
            default=degree_share,
            separated=are_separated(
                released[:, :2],
                self.labelled_nodes,
                lengths=(lengths.label_reach, lengths.degree),
                noise_std=self.noise_std,
            ),
            can_relay=can_relay and use_labels,
        )
        if decision.projection is not None:  # as wide as what is said instead
            decision = replace(decision, projection=_widened(decision.projection, num_classes))
        part_lengths = torch.tensor([lengths.degree] + [lengths.classes] * num_classes)
        sums = torch.from_numpy(released[:, 1 : 2 + num_classes]) / part_lengths
        if not use_labels:
            return ProbeFindings(use_labels, decision)
        labelled_neighbors = self._labelled_neighbors(released, lengths)
        return ProbeFindings(
            use_labels, decision, ProbeSums(sums, self.noise_std / part_lengths, labelled_neighbors)
        )

    def _labels(self) -> NDArray[np.float32]:
        """What is to be explained: classes, or where numbers lie in their order.

        A number that is a little larger is another bin as much as one that is much larger: of bins
        taken apart, sums over neighbours explain a tenth, or less, of what they do of the number.
        """
        if not self.ordered:
            return self.label_posteriors
        positions = np.arange(self.label_posteriors.shape[1], dtype=np.float32)
        return (self.label_posteriors @ positions)[:, None]

    def _labelled_neighbors(self, released: NDArray[np.float32], lengths: PartLengths) -> Tensor:
        labelled_neighbors = torch.from_numpy(released[:, 0] / np.float32(lengths.label_reach))
        noise = self.noise_std / lengths.label_reach * len(released) ** 0.5
        is_clear = float(labelled_neighbors.sum(dtype=torch.float64)) > CLEAR_ERRORS * noise
        return labelled_neighbors if is_clear else torch.from_numpy(released[:, 1].copy())

    def _label_reach(self, released: NDArray[np.float32], *, length: float) -> LabelReach:
        """Judge the poll, said with this length."""
        if not len(self.query_nodes):
            return LabelReach(similar=True, lower=False)
        labelled_counts, query_counts = (
            released[self.labelled_nodes] / length,
            released[self.query_nodes] / length,
        )
        return label_reach(labelled_counts, query_counts, noise_std=self.noise_std / length)

    def _label_reach_by_degree(
        self, released: NDArray[np.float32], lengths: PartLengths
    ) -> LabelReach | None:
        """Judge again where asked nodes have fewer neighbours, and therefore hear fewer speakers.

        Args:
            heard: (num_nodes, 2) speakers, neighbours.
            lengths: with which either was said.
        """
        degrees = torch.from_numpy(released[:, 1] / np.float32(lengths.degree))
        noise_std = self.noise_std / lengths.degree
        ratio = degree_ratio(degrees, self.labelled_nodes, self.query_nodes, noise_std=noise_std)
        if ratio == 1:
            return None
        labelled_neighbors = released[:, 0] / np.float32(lengths.label_reach)
        labelled_counts, query_counts = (
            labelled_neighbors[self.labelled_nodes],
            labelled_neighbors[self.query_nodes],
        )
        noise_std = self.noise_std / lengths.label_reach
        return label_reach_by_degree(
            labelled_counts, query_counts, ratio=ratio, noise_std=noise_std
        )


def _widened(coefficients: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Add columns of zeros."""
    return np.pad(coefficients, ((0, 0), (0, width - coefficients.shape[1])))


def probe_messages(
    labelled_nodes: Nodes, beliefs: Tensor, projection: ComponentProjection, *, lengths: PartLengths
) -> NDArray[np.float32]:
    """What nodes say in a trial: (num_nodes, 2 + num_classes + components), rows of norm 1 at most.

    Args:
        speakers: whom the poll counts.
        beliefs: (num_nodes, num_classes).
        projection: where nodes lie along the components of features.
        lengths: of the parts.
    """
    num_nodes, num_classes = beliefs.shape
    centre = beliefs.mean(dim=0)
    messages = np.empty((num_nodes, 2 + num_classes + projection.width), dtype=np.float32)
    for start in range(
        0, num_nodes, ROWS_PER_BLOCK
    ):  # no second copy of all beliefs: there may be no room
        rows = slice(start, start + ROWS_PER_BLOCK)
        class_part = class_rows(beliefs[rows], centre=centre).numpy()
        messages[rows, 2 : 2 + num_classes] = lengths.classes * class_part
        messages[rows, 2 + num_classes :] = lengths.features * projection(rows).numpy()
    messages[:, 0] = lengths.label_reach * label_reach_messages(labelled_nodes, num_nodes)[:, 0]
    messages[:, 1] = lengths.degree
    return messages


@dataclass(frozen=True, eq=False)
class NodeRoles:
    """Who speaks, and who listens."""

    labelled_nodes: Nodes
    """Training nodes whose labels are lent."""
    label_posteriors: Tensor  # (speakers, num_classes)
    query_nodes: Nodes
    """Who will be asked about."""


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """What may be asked, and what is known before."""

    noise_std: float | None
    """Of the release; None: nothing is asked."""
    content_share: float
    """Of the budget, for the trial in it; 0: it is a poll alone."""
    degree_share: float
    """The part of a message that is its constant, unless the trial finds another."""
    degree_share_is_fixed: bool = False
    """It was asked for, and stays."""
    ordered: bool = False
    """Classes are bins of numbers, in their order."""


class ProbeRunner:
    """One release, or none, and what was learned from it.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        feature_projection: by features.
        relay: of what is heard.
        probe_settings: what may be asked.
    """

    def __init__(
        self,
        inputs: Inputs,
        constants: FittedConstants,
        feature_projection: FeatureProjection,
        relay: Relay,
        probe_settings: ProbeSettings,
    ) -> None:
        self._inputs, self._constants, self._feature_projection = (
            inputs,
            constants,
            feature_projection,
        )
        self._relay, self._probe_settings = relay, probe_settings

    def run(
        self,
        door: Door,
        roles: NodeRoles,
        beliefs: Callable[[], Tensor],
        *,
        next_noise_std: float,
        can_relay: bool,
    ) -> ProbeFindings | None:
        """Ask, and keep what is found; None where there is nothing to ask, or nobody to ask for.

        Args:
            door: to the edges.
            roles: who speaks, and who listens.
            beliefs: gives those of all nodes, (num_nodes, num_classes).
            next_noise_std: of the first hop.
            can_relay: the aggregator is one whose sums can be said again.
        """
        probe_settings = self._probe_settings
        if probe_settings.noise_std is None or not len(roles.labelled_nodes):
            return None
        probe = Probe(
            labelled_nodes=roles.labelled_nodes,
            label_posteriors=roles.label_posteriors.numpy(),
            query_nodes=roles.query_nodes,
            noise_std=probe_settings.noise_std,
            next_noise_std=next_noise_std,
            ordered=probe_settings.ordered,
        )
        known = self._constants.get("use_labels")
        if probe_settings.content_share:
            findings = probe.run(
                door,
                partial(self._probe_messages, roles, beliefs),
                share=probe_settings.content_share,
                degree_share=probe_settings.degree_share,
                use_labels=None if known is None else bool(known),
                can_relay=can_relay and 0 < probe_settings.degree_share < 1,
            )
        elif len(roles.query_nodes):
            findings = probe.run_label_reach(door, num_nodes=self._inputs.num_nodes)
        else:
            return None
        self._constants.fit_once("use_labels", partial(torch.tensor, findings.use_labels))
        if findings.decision is not None:
            self._store_decision(findings.decision)
        return findings

    def _store_decision(self, decision: ContentDecision) -> None:
        """Say from now on what the trial has found; together, as one answer."""
        if self._constants.get("is_probed") is not None:
            return
        self._constants.fit_once("is_probed", partial(torch.tensor, True))
        if decision.relay:
            self._relay.activate()
        if not self._probe_settings.degree_share_is_fixed:
            share = torch.tensor(decision.degree_share, dtype=torch.float64)
            self._constants.fit_once("degree_share", lambda: share)
        if decision.projection is not None:
            self._constants.fit_once("projection", partial(torch.from_numpy, decision.projection))
            self._constants.fit_once(
                "project_later_hops", partial(torch.tensor, decision.project_later_hops)
            )

    def _probe_messages(
        self, roles: NodeRoles, beliefs: Callable[[], Tensor]
    ) -> NDArray[np.float32]:
        lengths = PartLengths.for_share(self._probe_settings.content_share)
        projection = self._feature_projection.component_projection(
            partial(self._components, roles.label_posteriors)
        )
        return probe_messages(roles.labelled_nodes, beliefs(), projection, lengths=lengths)

    def _components(self, label_posteriors: Tensor) -> Tensor:
        num_train, num_classes = label_posteriors.shape
        evidence = evidence_of(
            num_train,
            lengths=PartLengths.for_share(self._probe_settings.content_share),
            noise_std=self._probe_settings.noise_std or 0.0,
        )
        max_columns = num_train // NODES_PER_COLUMN - num_classes
        return components_of(self._inputs, evidence=evidence, max_columns=max_columns)
