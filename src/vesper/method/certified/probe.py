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
from vesper.method.base import Fitted
from vesper.method.certified.degree_matching import ratio_of
from vesper.method.certified.evidence import rest_of
from vesper.method.certified.feature_projection import Voting
from vesper.method.certified.label_reach import Polled, judged, judged_by_degree, poll_of
from vesper.method.certified.probe_decision import (
    NODES_A_COLUMN,
    Found,
    Lengths,
    Parts,
    evidence_of,
    judge,
)
from vesper.method.certified.probe_sums import Heard
from vesper.method.certified.relay import HandingOn, kept_apart
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import class_rows
from vesper.model.principal_components import Along, components_of
from vesper.party.representation import Nodes

ROWS = 1 << 14
"""Nodes at a time."""
CLEAR = 4.0
"""Errors above which a sum over all nodes is more than noise."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What was learned; `found` and `heard` where there was a trial."""

    speak: bool
    """Whether labels of training nodes are worth saying."""
    found: Found | None = None
    heard: Heard | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Asking:
    """Who speaks, who will be asked for, and what it may cost.

    Args:
        speakers: training nodes whose labels are lent.
        voices: (speakers, num_classes) these.
        asked: nodes that predictions are wanted for.
        noise_std: of the release.
        next_noise_std: of the hop after it.
        ordered: classes are bins of numbers, in their order.
    """

    speakers: Nodes
    voices: NDArray[np.float32]
    asked: Nodes
    noise_std: float
    next_noise_std: float
    ordered: bool = False

    def poll(self, door: Door, *, num_nodes: int) -> Answer:
        """Ask who hears speakers, and nothing else."""
        heard = door.release(poll_of(self.speakers, num_nodes), noise_std=self.noise_std)
        return Answer(speak=self._polled(heard[:, 0], length=1.0).alike)

    def trial(
        self,
        door: Door,
        messages_of_all: Callable[[], NDArray[np.float32]],
        *,
        share: float,
        degree_share: float,
        speak: bool | None = None,
        can_hand_on: bool = False,
    ) -> Answer:
        """Ask that, and what is worth saying.

        Args:
            door: to the edges.
            messages_of_all: makes the messages of all nodes (`trial_messages`).
            share: of the budget that the trial takes.
            degree_share: where nothing else is found.
            speak: what was found before about this graph, if it was.
            can_hand_on: neighbours may say what they hear.
        """
        lengths, num_classes = Lengths.of(share), self.voices.shape[1]
        messages = messages_of_all()
        own = messages[self.speakers, 2 + num_classes :] / np.float32(lengths.features)
        heard = door.release(messages, noise_std=self.noise_std)
        if heard.shape != messages.shape:
            raise VesperError(
                f"the release that asks what is worth saying: expected one of {messages.shape[1]} "
                f"columns, the one that is kept has {heard.shape[1]}, of an earlier version; begin "
                f"a new run"
            )
        del messages  # as large as what was heard
        polled = self._polled(heard[:, 0], length=lengths.poll)
        if not polled.alike:
            polled = self._by_degree(heard[:, :2], lengths) or polled
        is_apart = polled.apart if speak is None else not speak
        speak = polled.alike if speak is None else speak
        if is_apart:
            return Answer(speak=False)  # classes in it were labels, which nobody will say
        ours = heard[self.speakers].astype(np.float64)
        parts = Parts(
            degree=ours[:, 1:2],
            classes=ours[:, 2 : 2 + num_classes],
            features=ours[:, 2 + num_classes :],
            noise_std=self.noise_std,
        )
        found = judge(
            rest_of(self._labels(), own),
            parts,
            lengths=lengths,
            next_noise_std=self.next_noise_std,
            default=degree_share,
            kept_apart=kept_apart(
                heard[:, :2],
                self.speakers,
                lengths=(lengths.poll, lengths.degree),
                noise_std=self.noise_std,
            ),
            can_hand_on=can_hand_on and speak,
        )
        if found.votes is not None:  # as wide as what is said instead
            found = replace(found, votes=_widened(found.votes, num_classes))
        said = torch.tensor([lengths.degree] + [lengths.classes] * num_classes)
        sums = torch.from_numpy(heard[:, 1 : 2 + num_classes]) / said
        if not speak:
            return Answer(speak, found)
        speakers = self._heard_speakers(heard, lengths)
        return Answer(speak, found, Heard(sums, self.noise_std / said, speakers))

    def _labels(self) -> NDArray[np.float32]:
        """What is to be explained: classes, or where numbers lie in their order.

        A number that is a little larger is another bin as much as one that is much larger: of bins
        taken apart, sums over neighbours explain a tenth, or less, of what they do of the number.
        """
        if not self.ordered:
            return self.voices
        positions = np.arange(self.voices.shape[1], dtype=np.float32)
        return (self.voices @ positions)[:, None]

    def _heard_speakers(self, heard: NDArray[np.float32], lengths: Lengths) -> Tensor:
        speakers = torch.from_numpy(heard[:, 0] / np.float32(lengths.poll))
        noise = self.noise_std / lengths.poll * len(heard) ** 0.5
        is_clear = float(speakers.sum(dtype=torch.float64)) > CLEAR * noise
        return speakers if is_clear else torch.from_numpy(heard[:, 1].copy())

    def _polled(self, heard: NDArray[np.float32], *, length: float) -> Polled:
        """Judge the poll, said with this length."""
        if not len(self.asked):
            return Polled(alike=True, apart=False)
        ours, theirs = heard[self.speakers] / length, heard[self.asked] / length
        return judged(ours, theirs, noise_std=self.noise_std / length)

    def _by_degree(self, heard: NDArray[np.float32], lengths: Lengths) -> Polled | None:
        """Judge again where asked nodes have fewer neighbours, and therefore hear fewer speakers.

        Args:
            heard: (num_nodes, 2) speakers, neighbours.
            lengths: with which either was said.
        """
        degrees = torch.from_numpy(heard[:, 1] / np.float32(lengths.degree))
        noise_std = self.noise_std / lengths.degree
        ratio = ratio_of(degrees, self.speakers, self.asked, noise_std=noise_std)
        if ratio == 1:
            return None
        speaking = heard[:, 0] / np.float32(lengths.poll)
        ours, theirs = speaking[self.speakers], speaking[self.asked]
        noise_std = self.noise_std / lengths.poll
        return judged_by_degree(ours, theirs, ratio=ratio, noise_std=noise_std)


def _widened(votes: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Add columns of zeros."""
    return np.pad(votes, ((0, 0), (0, width - votes.shape[1])))


def trial_messages(
    speakers: Nodes, beliefs: Tensor, along: Along, *, lengths: Lengths
) -> NDArray[np.float32]:
    """What nodes say in a trial: (num_nodes, 2 + num_classes + components), rows of norm 1 at most.

    Args:
        speakers: whom the poll counts.
        beliefs: (num_nodes, num_classes).
        along: where nodes lie along the components of features.
        lengths: of the parts.
    """
    num_nodes, num_classes = beliefs.shape
    centre = beliefs.mean(dim=0)
    messages = np.empty((num_nodes, 2 + num_classes + along.width), dtype=np.float32)
    for start in range(0, num_nodes, ROWS):  # no second copy of all beliefs: there may be no room
        rows = slice(start, start + ROWS)
        said = class_rows(beliefs[rows], centre=centre).numpy()
        messages[rows, 2 : 2 + num_classes] = lengths.classes * said
        messages[rows, 2 + num_classes :] = lengths.features * along(rows).numpy()
    messages[:, 0] = lengths.poll * poll_of(speakers, num_nodes)[:, 0]
    messages[:, 1] = lengths.degree
    return messages


@dataclass(frozen=True, eq=False)
class Audience:
    """Who speaks, and who listens."""

    speakers: Nodes
    """Training nodes whose labels are lent."""
    voices: Tensor  # (speakers, num_classes)
    asked: Nodes
    """Who will be asked about."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What may be asked, and what is known before."""

    noise_std: float | None
    """Of the release; None: nothing is asked."""
    trial_share: float
    """Of the budget, for the trial in it; 0: it is a poll alone."""
    degree_share: float
    """The part of a message that is its constant, unless the trial finds another."""
    keeps_share: bool = False
    """It was asked for, and stays."""
    ordered: bool = False
    """Classes are bins of numbers, in their order."""


class Enquiry:
    """One release, or none, and what was learned from it.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        voting: by features.
        handing_on: of what is heard.
        terms: what may be asked.
    """

    def __init__(
        self,
        inputs: Inputs,
        fitted: Fitted,
        voting: Voting,
        handing_on: HandingOn,
        terms: Terms,
    ) -> None:
        self._inputs, self._fitted, self._voting = inputs, fitted, voting
        self._handing_on, self._terms = handing_on, terms

    def ask(
        self,
        door: Door,
        audience: Audience,
        beliefs: Callable[[], Tensor],
        *,
        next_noise_std: float,
        can_hand_on: bool,
    ) -> Answer | None:
        """Ask, and keep what is found; None where there is nothing to ask, or nobody to ask for.

        Args:
            door: to the edges.
            audience: who speaks, and who listens.
            beliefs: gives those of all nodes, (num_nodes, num_classes).
            next_noise_std: of the first hop.
            can_hand_on: the aggregator is one whose sums can be said again.
        """
        terms = self._terms
        if terms.noise_std is None or not len(audience.speakers):
            return None
        asking = Asking(
            speakers=audience.speakers,
            voices=audience.voices.numpy(),
            asked=audience.asked,
            noise_std=terms.noise_std,
            next_noise_std=next_noise_std,
            ordered=terms.ordered,
        )
        known = self._fitted.find("speak")
        if terms.trial_share:
            answer = asking.trial(
                door,
                partial(self._messages, audience, beliefs),
                share=terms.trial_share,
                degree_share=terms.degree_share,
                speak=None if known is None else bool(known),
                can_hand_on=can_hand_on and 0 < terms.degree_share < 1,
            )
        elif len(audience.asked):
            answer = asking.poll(door, num_nodes=self._inputs.num_nodes)
        else:
            return None
        self._fitted.once("speak", partial(torch.tensor, answer.speak))
        if answer.found is not None:
            self._keep(answer.found)
        return answer

    def _keep(self, found: Found) -> None:
        """Say from now on what the trial has found; together, as one answer."""
        if self._fitted.find("found") is not None:
            return
        self._fitted.once("found", partial(torch.tensor, True))
        if found.hand_on:
            self._handing_on.begin()
        if not self._terms.keeps_share:
            share = torch.tensor(found.degree_share, dtype=torch.float64)
            self._fitted.once("degree_share", lambda: share)
        if found.votes is not None:
            self._fitted.once("votes", partial(torch.from_numpy, found.votes))
            self._fitted.once("again", partial(torch.tensor, found.again))

    def _messages(self, audience: Audience, beliefs: Callable[[], Tensor]) -> NDArray[np.float32]:
        lengths = Lengths.of(self._terms.trial_share)
        along = self._voting.along(partial(self._components, audience.voices))
        return trial_messages(audience.speakers, beliefs(), along, lengths=lengths)

    def _components(self, voices: Tensor) -> Tensor:
        num_train, num_classes = voices.shape
        evidence = evidence_of(
            num_train,
            lengths=Lengths.of(self._terms.trial_share),
            noise_std=self._terms.noise_std or 0.0,
        )
        most = num_train // NODES_A_COLUMN - num_classes
        return components_of(self._inputs, evidence=evidence, most=most)
