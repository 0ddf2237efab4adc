"""Nodes that know one another through others only: these hand on what they have heard.

    hops = 1    the hop hands on what the trial heard; on a later graph, where nothing is asked,
                what a release with a tenth of the hop's budget lets nodes hear
    hops > 1    the first hop says classes, as always; later ones hand on what was heard in it

Users who pay the same merchants, people who share a device: what a merchant hears of its customers
tells them of each other, but what it says of itself does not. The trial finds out where that is so
(`method.relayed`).
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from vesper.method.fitted import Fitted
from vesper.model.handed_on import HandedOn, change_of, is_lacking, rate_of, typical_of
from vesper.party.representation import Nodes

LENGTH = 0.5
"""Of what is typically heard in excess: who heard more is cut to length 1."""
LISTENING = 0.1
"""Of the budget of the only hop on a later graph, for what is then handed on; about what the trial
has, and a little more, so that noise is not further from that of training than it must be."""


def split(noise_std: float) -> tuple[float, float]:
    """Noise of listening and of handing on that cost what one release with this noise costs.

    A little more: what is charged is rounded up.

    >>> first, second = split(2.0)
    >>> 0 < 1 / 2.0**2 - (1 / first**2 + 1 / second**2) < 1e-6
    True
    """
    spare = 1 + 1e-6
    return (
        spare * noise_std / math.sqrt(LISTENING),
        spare * noise_std / math.sqrt(1 - LISTENING),
    )


class HandingOn:
    """What is handed on in which hop.

    Args:
        fitted: where what is fitted stands.
        hops: how many there will be.
    """

    def __init__(self, fitted: Fitted, *, hops: int) -> None:
        self._fitted, self._hops = fitted, hops
        self._own: Tensor | None = None  # (num_nodes, num_classes)
        self._handed: HandedOn | None = None
        self._weights: Tensor | None = None  # (num_nodes,)

    @property
    def is_found(self) -> bool:
        """Whether the trial found that it is worth it."""
        return self._fitted.find("hand_on") is not None

    def begin(self) -> None:
        """Hand on from now on, on every graph."""
        self._fitted.once("hand_on", partial(torch.tensor, True))

    def weigh(self, weights: Tensor) -> None:
        """Take through whom speakers know one another: (num_nodes,) speakers that each hears."""
        self._weights = weights

    def before(self, stage: int) -> bool:
        """Whether nodes hand on what they have heard in the hop before a stage."""
        return self.is_found and (stage > 1 or self._hops == 1)

    def note(self, own: Tensor) -> None:
        """Remember what nodes say themselves before the first hop: (num_nodes, num_classes)."""
        self._own = own

    def messages(self, heard: Tensor, *, degree_share: float) -> Tensor:
        """What all nodes say: (num_nodes, 1 + num_classes).

        Args:
            heard: (num_nodes, 1 + num_classes) sums of degree and classes, of rows of length 1.
            degree_share: c of these messages.
        """
        rate = self._fitted.once("handed_rate", partial(rate_of, heard))
        typical = self._fitted.once("handed_size", partial(typical_of, heard, rate))
        length = max(LENGTH * float(typical), 1e-6)
        weights = heard[:, 0] if self._weights is None else self._weights
        change = self._fitted.once(
            "handed_change", partial(change_of, heard, rate, length, weights)
        )
        self._handed = HandedOn(rate=rate, length=length, change=change, degree_share=degree_share)
        return self._handed.messages(heard)

    def read(
        self, released: Tensor, *, speakers: Nodes, asked: Nodes, noise_std: float
    ) -> Tensor | None:
        """Take off what nodes had said themselves; None where nothing was handed on.

        All but degrees is left out where those who will be asked for hear nothing of the kind.

        Args:
            released: (num_nodes, 1 + num_classes).
            speakers: who had said a label.
            asked: nodes that predictions are wanted for, where they are known.
            noise_std: of the release.
        """
        handed, self._handed = self._handed, None
        if handed is None or self._own is None:
            return None
        cleared = handed.without_own(released, self._own, noise_std=noise_std)

        def is_apart() -> Tensor:
            if min(len(speakers), len(asked)) < 2:
                return torch.tensor(False)
            return torch.tensor(is_lacking(cleared[speakers], cleared[asked], noise_std=noise_std))

        if self._fitted.once("apart", is_apart):
            cleared[:, 1:] = 0
        return cleared


def sums_of(released: Sequence[Tensor], *, degree_share: float) -> Tensor:
    """Sums of rows (c, sqrt(1 - c^2) row) in the first hop as sums of (1, row)."""
    first = released[0]
    lengths = torch.full((first.shape[1],), (1 - degree_share**2) ** 0.5)
    lengths[0] = degree_share
    return first / lengths
