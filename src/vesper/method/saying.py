"""What nodes of the certified plan say before each hop.

    beliefs   = labels of training nodes where lent and worth saying, posteriors elsewhere
    messages  = of the beliefs, or of votes where features tell more (the trial), or of what was
                heard, where neither tells anything (`handing_on`)

No edge is read but through the door, once, by `ask`. What it finds is fitted once: on another graph
the same is said.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.mechanism.door import Door
from vesper.method.asking import Asking, trial_messages
from vesper.method.fitted import Fitted
from vesper.method.handing_on import HandingOn, sums_of
from vesper.method.hearing import Hearing
from vesper.method.thinning import ratio_of
from vesper.method.trial import NODES_A_COLUMN, Found, Lengths, evidence_of
from vesper.method.voting import Voting, vote_length
from vesper.model.beliefs import combined
from vesper.model.components import components_of
from vesper.model.messages import (
    above_zero,
    class_rows,
    damp,
    messages_of,
    with_degree,
)
from vesper.model.scaling import Inputs
from vesper.party.representation import NOBODY, Nodes

ROWS = 1 << 14
"""Nodes at a time."""


class Saying:
    """Who speaks, and what all nodes say.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        aggregator: by name.
        degree_share: the part of a message that is its constant, unless the trial finds another.
        noise_std: of the release that asks; None: nothing is asked.
        trial_share: of the budget, for the trial in it; 0: it is a poll alone.
        keeps_share: the degree share was asked for, and stays.
        hops: how many there will be.
        ordered: classes are bins of numbers, in their order.
    """

    def __init__(
        self,
        inputs: Inputs,
        fitted: Fitted,
        *,
        aggregator: str,
        degree_share: float,
        noise_std: float | None,
        trial_share: float,
        keeps_share: bool,
        hops: int = 1,
        ordered: bool = False,
    ) -> None:
        self._inputs, self._fitted, self._aggregator = inputs, fitted, aggregator
        self._degree_share, self._keeps_share = degree_share, keeps_share
        self._noise_std, self._trial_share = noise_std, trial_share
        self._speakers, self._asked = NOBODY, NOBODY
        self._voices = torch.zeros(0, 0)
        self._hearing = Hearing()
        self.handing_on = HandingOn(fitted, hops=hops)
        self._ordered = ordered
        self._voting = Voting(inputs, fitted, length=vote_length(ordered=ordered))

    @property
    def degree_share(self) -> float:
        """The part of a message that is its constant."""
        found = self._fitted.find("degree_share")
        return self._degree_share if found is None else float(found)

    @property
    def asked(self) -> Nodes:
        """Who will be asked about."""
        return self._asked

    def hear(self, speakers: Nodes, voices: NDArray[np.float32], asked: Nodes) -> None:
        """Take the beliefs of training nodes, and who will be asked for."""
        self._speakers, self._voices = speakers, torch.from_numpy(voices.copy())
        self._asked = asked

    def ask(self, door: Door, logits: Tensor, *, next_noise_std: float) -> None:
        """Find out what is worth saying, and whether labels are among it.

        Args:
            door: to the edges.
            logits: (num_nodes, num_classes) of the stage before.
            next_noise_std: of the first hop.
        """
        if self._noise_std is None or not len(self._speakers):
            return
        asking = Asking(
            speakers=self._speakers,
            voices=self._voices.numpy(),
            asked=self._asked,
            noise_std=self._noise_std,
            next_noise_std=next_noise_std,
            ordered=self._ordered,
        )
        known = self._fitted.find("speak")
        if self._trial_share:
            answer = asking.trial(
                door,
                partial(self._trial_messages, logits),
                share=self._trial_share,
                degree_share=self._degree_share,
                speak=None if known is None else bool(known),
                can_hand_on=self._aggregator == "gin" and 0 < self._degree_share < 1,
            )
        elif len(self._asked):
            answer = asking.poll(door, num_nodes=self._inputs.num_nodes)
        else:
            return
        self._fitted.once("speak", partial(torch.tensor, answer.speak))
        if answer.found is not None:
            self._keep(answer.found)
        if answer.heard is not None and self.handing_on.is_found:
            self.handing_on.weigh(answer.heard.speakers)
        # Of what this graph was trained with before, if it was: the first hop will say the same.
        said = self._fitted.find("speak") and self._fitted.find("votes") is None
        self._hearing.keep(answer.heard if said else None)

    def _keep(self, found: Found) -> None:
        """Say from now on what the trial has found; together, as one answer."""
        if self._fitted.find("found") is not None:
            return
        self._fitted.once("found", partial(torch.tensor, True))
        if found.hand_on:
            self.handing_on.begin()
        if not self._keeps_share:
            share = torch.tensor(found.degree_share, dtype=torch.float64)
            self._fitted.once("degree_share", lambda: share)
        if found.votes is not None:
            self._fitted.once("votes", partial(torch.from_numpy, found.votes))
            self._fitted.once("again", partial(torch.tensor, found.again))

    def beliefs(self, logits: Tensor) -> Tensor:
        """What nodes hold likely, or have been told: (num_nodes, num_classes)."""
        beliefs = logits.softmax(dim=1)
        speak = self._fitted.find("speak")
        if speak is None or speak:
            beliefs[self._speakers] = combined(beliefs[self._speakers], self._voices)
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
            released, speakers=self._speakers, asked=self._asked, noise_std=noise_std
        )
        if read is None:
            return self._hearing.joined(released, degree_share=share, noise_std=noise_std)
        self._hearing.keep(None)
        return read

    def ratio_of(self, released: Tensor, *, noise_std: float) -> float:
        """Of degrees of those who will be asked about to those of training nodes, where small.

        Args:
            released: (num_nodes, 1 + num_classes) of the first hop.
            noise_std: in it.
        """
        share = self.degree_share
        if self._aggregator != "gin" or share == 0 or self.handing_on.is_found:
            return 1.0
        if not len(self._asked):  # another graph: its nodes hear what they hear
            return 1.0
        ratio = self._fitted.once(
            "thinned",
            lambda: torch.tensor(
                ratio_of(
                    released[:, 0] / share,
                    self._speakers,
                    self._asked,
                    noise_std=noise_std / share,
                ),
                dtype=torch.float64,
            ),
        )
        return float(ratio)

    def _trial_messages(self, logits: Tensor) -> NDArray[np.float32]:
        lengths = Lengths.of(self._trial_share)
        along = self._voting.along(self._components)
        return trial_messages(self._speakers, self.beliefs(logits), along, lengths=lengths)

    def _components(self) -> Tensor:
        num_train, num_classes = self._voices.shape
        evidence = evidence_of(
            num_train,
            lengths=Lengths.of(self._trial_share),
            noise_std=self._noise_std or 0.0,
        )
        most = num_train // NODES_A_COLUMN - num_classes
        return components_of(self._inputs, evidence=evidence, most=most)
