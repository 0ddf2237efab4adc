"""Nodes that know one another through others only: these hand on what they have heard.

    hops = 1    the hop hands on what the trial heard
    hops > 1    the first hop says classes, as always; later ones hand on what was heard in it

Users who pay the same merchants, people who share a device: what a merchant hears of its customers
tells them of each other, but what it says of itself does not. The trial finds out where that is so
(`method.trial`): speakers hear no speakers, or nothing that neighbours say of themselves tells.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from vesper.method.fitted import Fitted
from vesper.model.handed_on import HandedOn, excess_of, is_lacking, rate_of, whole_of
from vesper.party.representation import Nodes

LENGTH = 0.5
"""Of what is typically heard in excess: who heard more is cut to length 1."""


class HandingOn:
    """What is handed on in which hop.

    Args:
        fitted: where what is fitted stands.
        hops: how many there will be.
    """

    def __init__(self, fitted: Fitted, *, hops: int) -> None:
        self._fitted, self._hops = fitted, hops
        self._own: Tensor | None = None  # (speakers, num_classes)
        self._handed: HandedOn | None = None

    def begin(self) -> None:
        """Hand on from now on, on every graph."""
        self._fitted.once("hand_on", partial(torch.tensor, True))

    def before(self, stage: int) -> bool:
        """Whether nodes hand on what they have heard in the hop before a stage."""
        return self._fitted.find("hand_on") is not None and (stage > 1 or self._hops == 1)

    def note(self, own: Tensor) -> None:
        """Remember what speakers say themselves before the first hop: (speakers, num_classes)."""
        if self._fitted.find("hand_on") is not None:
            self._own = own

    def messages(
        self, trial: Tensor | None, released: Sequence[Tensor], *, degree_share: float
    ) -> Tensor | None:
        """What all nodes say: (num_nodes, 1 + num_classes); None where nothing was heard yet.

        Args:
            trial: (num_nodes, 1 + num_classes) sums that were heard in it, of rows of length 1.
            released: of the hops before.
            degree_share: c of their messages, and of these.
        """
        heard = _unit(released[0], degree_share) if released else trial
        if heard is None:
            return None
        rate = self._fitted.once("handed_rate", partial(rate_of, heard))
        typical = self._fitted.once("handed_size", partial(_typical, heard, rate))
        length = max(LENGTH * float(typical), 1e-6)
        whole = self._fitted.once("handed_whole", partial(whole_of, heard, rate, length))
        self._handed = HandedOn(
            rate=rate, length=length, whole=float(whole), degree_share=degree_share
        )
        return self._handed.messages(heard)

    def read(
        self, released: Tensor, *, speakers: Nodes, asked: Nodes, noise_std: float
    ) -> Tensor | None:
        """Take off what speakers had said themselves; None where nothing was handed on.

        All of it is left out where those who will be asked for hear nothing of the kind.

        Args:
            released: (num_nodes, 1 + num_classes).
            speakers: who had said something.
            asked: nodes that predictions are wanted for, where they are known.
            noise_std: of the release.
        """
        handed, self._handed = self._handed, None
        if handed is None or self._own is None:
            return None
        released = released.clone()  # what it was is kept elsewhere
        ours = handed.without_own(released[speakers], self._own, noise_std=noise_std)
        released[speakers] = ours

        def is_apart() -> Tensor:
            if min(len(speakers), len(asked)) < 2:
                return torch.tensor(False)
            return torch.tensor(is_lacking(ours, released[asked], noise_std=noise_std))

        return torch.zeros_like(released) if self._fitted.once("apart", is_apart) else released


def _unit(released: Tensor, degree_share: float) -> Tensor:
    """Sums of rows (c, sqrt(1 - c^2) row) as sums of (1, row)."""
    lengths = torch.full((released.shape[1],), (1 - degree_share**2) ** 0.5)
    lengths[0] = degree_share
    return released / lengths


def _typical(heard: Tensor, rate: Tensor) -> Tensor:
    """Root mean square of what is heard in excess: a scalar."""
    return excess_of(heard, rate).square().sum(dim=1).mean().sqrt()
