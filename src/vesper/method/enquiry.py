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
