"""One release before the first hop, from which a run learns what its nodes should say.

    speak     do those who will be asked for hear speakers as training nodes do?     `method.poll`
    found     votes of features or classes, and how much of the degree?              `method.trial`
    heard     sums of classes and degrees on the way: they are averaged into the first hop

All of it is post-processing of one release, charged as any other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import VesperError
from vesper.mechanism.door import Door
from vesper.method.apart import kept_apart
from vesper.method.explained import rest_of
from vesper.method.hearing import Heard
from vesper.method.poll import Polled, judged, judged_by_degree, poll_of
from vesper.method.thinning import ratio_of
from vesper.method.trial import Found, Lengths, Parts, judge
from vesper.model.components import Along
from vesper.model.messages import class_rows
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
