"""What a run asks before its first hop, and what it keeps of the answer.

    speak           labels of training nodes are worth saying
    degree_share    the part of a message that is its constant, unless it was asked for
    votes, again    what features vote for, where that tells more than classes; in later hops too
    handing on      neighbours say what they hear

Asked once and fitted together: on another graph the same is said.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.mechanism.door import Door
from vesper.method.asking import Answer, Asking, trial_messages
from vesper.method.fitted import Fitted
from vesper.method.handing_on import HandingOn
from vesper.method.trial import NODES_A_COLUMN, Found, Lengths, evidence_of
from vesper.method.voting import Voting
from vesper.model.components import components_of
from vesper.model.scaling import Inputs
from vesper.party.representation import Nodes


@dataclass(frozen=True, eq=False)
class Audience:
    """Who speaks, and who listens."""

    speakers: Nodes
    """Training nodes whose labels are lent."""
    voices: Tensor  # (speakers, num_classes)
    asked: Nodes
    """Who will be asked about."""


class Enquiry:
    """One release, or none, and what was learned from it.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        voting: by features.
        handing_on: of what is heard.
        noise_std: of the release; None: nothing is asked.
        trial_share: of the budget, for the trial in it; 0: it is a poll alone.
        degree_share: of messages, where nothing else is found.
        keeps_share: it was asked for, and stays.
        ordered: classes are bins of numbers, in their order.
    """

    def __init__(
        self,
        inputs: Inputs,
        fitted: Fitted,
        voting: Voting,
        handing_on: HandingOn,
        *,
        noise_std: float | None,
        trial_share: float,
        degree_share: float,
        keeps_share: bool,
        ordered: bool,
    ) -> None:
        self._inputs, self._fitted, self._voting = inputs, fitted, voting
        self._handing_on, self._ordered = handing_on, ordered
        self._noise_std, self._trial_share = noise_std, trial_share
        self._degree_share, self._keeps_share = degree_share, keeps_share

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
        if self._noise_std is None or not len(audience.speakers):
            return None
        asking = Asking(
            speakers=audience.speakers,
            voices=audience.voices.numpy(),
            asked=audience.asked,
            noise_std=self._noise_std,
            next_noise_std=next_noise_std,
            ordered=self._ordered,
        )
        known = self._fitted.find("speak")
        if self._trial_share:
            answer = asking.trial(
                door,
                partial(self._messages, audience, beliefs),
                share=self._trial_share,
                degree_share=self._degree_share,
                speak=None if known is None else bool(known),
                can_hand_on=can_hand_on and 0 < self._degree_share < 1,
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
        if not self._keeps_share:
            share = torch.tensor(found.degree_share, dtype=torch.float64)
            self._fitted.once("degree_share", lambda: share)
        if found.votes is not None:
            self._fitted.once("votes", partial(torch.from_numpy, found.votes))
            self._fitted.once("again", partial(torch.tensor, found.again))

    def _messages(self, audience: Audience, beliefs: Callable[[], Tensor]) -> NDArray[np.float32]:
        lengths = Lengths.of(self._trial_share)
        along = self._voting.along(partial(self._components, audience.voices))
        return trial_messages(audience.speakers, beliefs(), along, lengths=lengths)

    def _components(self, voices: Tensor) -> Tensor:
        num_train, num_classes = voices.shape
        evidence = evidence_of(
            num_train,
            lengths=Lengths.of(self._trial_share),
            noise_std=self._noise_std or 0.0,
        )
        most = num_train // NODES_A_COLUMN - num_classes
        return components_of(self._inputs, evidence=evidence, most=most)
