"""What nodes of the certified plan say before each hop.

    beliefs   = labels of training nodes where lent and worth saying, posteriors elsewhere
    messages  = of the beliefs, or of votes where features tell more (the trial), or of what was
                heard, where neither tells anything (`handing_on`)

No edge is read but through the door: by what is asked before the first hop (`enquiry`), and where
an only hop hands on, by `listen`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.mechanism.door import Door
from vesper.method.base import Fitted
from vesper.method.certified.feature_projection import Voting, vote_length
from vesper.method.certified.probe import Audience, Enquiry, Terms
from vesper.method.certified.probe_sums import Hearing
from vesper.method.certified.relay import HandingOn, sums_of
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import (
    above_zero,
    class_rows,
    combined,
    damp,
    messages_of,
    with_degree,
)
from vesper.party.representation import NOBODY, Nodes

ROWS = 1 << 14
"""Nodes at a time."""


class Saying:
    """Who speaks, and what all nodes say.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        aggregator: by name.
        terms: what may be asked before.
        hops: how many there will be.
    """

    def __init__(
        self,
        inputs: Inputs,
        fitted: Fitted,
        *,
        aggregator: str,
        terms: Terms,
        hops: int = 1,
    ) -> None:
        self._fitted, self._aggregator = fitted, aggregator
        self._terms = terms
        self._audience = Audience(NOBODY, torch.zeros(0, 0), NOBODY)
        self._hearing = Hearing()
        self.handing_on = HandingOn(fitted, hops=hops)
        self._voting = Voting(inputs, fitted, length=vote_length(ordered=terms.ordered))
        self._enquiry = Enquiry(inputs, fitted, self._voting, self.handing_on, terms)

    @property
    def degree_share(self) -> float:
        """The part of a message that is its constant."""
        found = self._fitted.find("degree_share")
        return self._terms.degree_share if found is None else float(found)

    @property
    def audience(self) -> Audience:
        """Who speaks, and who will be asked about."""
        return self._audience

    def hear(self, speakers: Nodes, voices: NDArray[np.float32], asked: Nodes) -> None:
        """Take the beliefs of training nodes, and who will be asked for."""
        self._audience = Audience(speakers, torch.from_numpy(voices.copy()), asked)

    def ask(self, door: Door, logits: Tensor, *, next_noise_std: float) -> None:
        """Find out what is worth saying, and whether labels are among it.

        Args:
            door: to the edges.
            logits: (num_nodes, num_classes) of the stage before.
            next_noise_std: of the first hop.
        """
        answer = self._enquiry.ask(
            door,
            self._audience,
            partial(self.beliefs, logits),
            next_noise_std=next_noise_std,
            can_hand_on=self._aggregator == "gin",
        )
        if answer is None:
            return
        if answer.heard is not None and self.handing_on.is_found:
            self.handing_on.weigh(answer.heard.speakers)
        # Of what this graph was trained with before, if it was: the first hop will say the same.
        said = self._fitted.find("speak") and self._fitted.find("votes") is None
        self._hearing.keep(answer.heard if said else None)

    def beliefs(self, logits: Tensor) -> Tensor:
        """What nodes hold likely, or have been told: (num_nodes, num_classes)."""
        beliefs = logits.softmax(dim=1)
        speak = self._fitted.find("speak")
        if speak is None or speak:
            speakers = self._audience.speakers
            beliefs[speakers] = combined(beliefs[speakers], self._audience.voices)
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
        if stage == 1 and self.handing_on.is_found:
            self.handing_on.note(class_rows(beliefs, centre=centre))
        if self.handing_on.before(stage):
            share = self.degree_share
            heard = sums_of(released, degree_share=share) if released else self._hearing.sums
            return self.handing_on.messages(heard, degree_share=share)
        votes, again = self._fitted.find("votes"), self._fitted.find("again")
        if votes is not None and (stage == 1 or again):  # the same again: another draw of noise
            said = self._voting.votes(votes)
            messages = with_degree(said, degree_share=self.degree_share)
        else:
            messages = self._of_classes(beliefs, centre)
        if self._aggregator == "gcn" and released:
            degrees = torch.stack([z[:, 0] for z in released]).mean(dim=0) / self.degree_share
            median = self._fitted.once(f"median{stage}", degrees.median)
            messages = damp(messages, degrees, median=median)
        return above_zero(messages) if self._aggregator == "max" else messages

    def listen(self, door: Door, beliefs: Tensor, *, centre: Tensor, noise_std: float) -> float:
        """Hear classes before the only hop, where they are handed on and no trial has heard them.

        Args:
            door: to the edges.
            beliefs: (num_nodes, num_classes).
            centre: (num_classes,) what counts as the mean belief.
            noise_std: that was planned for the hop.

        Returns:
            The noise that is left for the hop.
        """
        if not self.handing_on.before(1) or self._hearing.has_heard:
            return noise_std
        messages = self._of_classes(beliefs, centre)
        share = self.degree_share
        return self._hearing.listen(door, messages, degree_share=share, noise_std=noise_std)

    def _of_classes(self, beliefs: Tensor, centre: Tensor) -> Tensor:
        messages = torch.empty(len(beliefs), beliefs.shape[1] + 1)
        for start in range(0, len(beliefs), ROWS):
            rows = slice(start, start + ROWS)
            messages[rows] = messages_of(
                beliefs[rows], degree_share=self.degree_share, centre=centre
            )
        return messages

    def joined(self, released: Tensor, *, noise_std: float) -> Tensor:
        """Add to the first hop what the trial heard of the same messages.

        Of what was handed on, what a node had said itself is taken off.
        """
        share = self.degree_share
        read = self.handing_on.read(
            released,
            speakers=self._audience.speakers,
            asked=self._audience.asked,
            noise_std=noise_std,
        )
        if read is None:
            return self._hearing.joined(released, degree_share=share, noise_std=noise_std)
        self._hearing.keep(None)
        return read
