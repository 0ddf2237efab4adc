"""Nodes that know one another through others only: these hand on what they have heard.

    hops = 1    the hop hands on what the trial heard; on a later graph, where nothing is asked,
                what a release with a tenth of the hop's budget lets nodes hear
    hops > 1    the first hop says classes, as always; later ones hand on what was heard in it

Users who pay the same merchants, people who share a device: what a merchant hears of its customers
tells them of each other, but what it says of itself does not. The trial finds out where that is so
(`relay`).

Do speakers know one another through others only? What the poll and degrees of the trial say.

share   = ends of edges at speakers / all ends
fair    = MIXED share degree           of the speakers that a speaker would hear, if everybody
apart   where  fair > CLEAR errors     knew anybody
        and    fair - heard > error

Do nodes know one another through others only? What the trial says of it.

    kept apart    speakers hardly hear a speaker, the degree explains less than MUCH of labels, and
                  so does, as far as can be told, what neighbours say of themselves
    told nothing  that explains less than LITTLE beyond doubt, though what tells would have been
                  heard, and the degree less than TELLING

Then neighbours hand on what they have heard (`relay`). In the second case nothing is
known of what they have heard, but nothing is lost by it either.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.method.base import Fitted
from vesper.method.certified.evidence import FAINTEST, Explained
from vesper.model.relayed_rows import HandedOn, change_of, is_lacking, rate_of, typical_of
from vesper.party.representation import Nodes

MIXED = 0.7
"""Who hears fewer than so many of the speakers that it would hear by chance is kept apart."""
CLEAR = 1.5
"""Errors that these are at least, so that an error alone hardly passes for it."""


def kept_apart(
    heard: NDArray[np.float32], speakers: Nodes, *, lengths: tuple[float, float], noise_std: float
) -> bool:
    """Whether speakers have neighbours, and hardly a speaker among them.

    Args:
        heard: (num_nodes, 2) sums over neighbours: those that speak, all.
        speakers: who speaks.
        lengths: with which either was said.
        noise_std: in the sums.

    >>> pairs = np.array([[1, 1], [1, 1], [0, 1], [0, 1]], "f4")  # two speakers, who are neighbours
    >>> kept_apart(pairs, np.array([0, 1]), lengths=(1, 1), noise_std=0.0)
    False
    >>> shops = np.zeros((200, 2), "f4")  # a hundred speakers have seven neighbours each
    >>> shops[:100], shops[100:] = (0, 7), (7, 7)
    >>> kept_apart(shops, np.arange(100), lengths=(1, 1), noise_std=0.0)
    True
    >>> kept_apart(shops, np.arange(100), lengths=(1, 1), noise_std=20.0)
    False
    """
    ours = heard[speakers].mean(axis=0, dtype=np.float64)  # (2,)
    speaking, degree = float(ours[0]) / lengths[0], float(ours[1]) / lengths[1]
    all_ends = float(heard[:, 1].sum(dtype=np.float64)) / lengths[1]
    share = min(max(len(speakers) * degree / max(all_ends, 1e-6), 0.0), 1.0)
    noise = math.hypot(1 / lengths[0], MIXED * share / lengths[1]) * noise_std
    by_chance = 2 * share * max(degree, 0.0)  # variance of the speakers that a node knows
    error = math.sqrt((noise**2 + by_chance) / len(speakers))
    fair = MIXED * share * degree
    return fair > CLEAR * error and fair - speaking > error


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


MUCH = 0.1
"""Of labels; it may be a chance of what the few say through whom many know one another."""
TELLING = 0.05
"""Of labels, that something which tells explains without noise."""
LITTLE = 0.015
"""Of labels."""
HEARD = 15.0
"""Deviations of chance with which something that tells would be heard, to conclude from silence."""
DOUBT = 2.0
"""Errors by which a share may be larger, or smaller, than it seems."""


def is_relayed(told: Sequence[Explained], *, degree: Explained, kept_apart: bool) -> bool:
    """Whether neighbours should hand on what they have heard.

    Args:
        told: what they say of themselves explains, beside the degree.
        degree: what that explains.
        kept_apart: speakers hardly hear a speaker (`relay`).
    """
    most = MUCH if kept_apart else TELLING
    if degree.less(degree.error).without_noise >= most:
        return False  # it is in every message, and would have to share it with more
    return all(told_little(part) if kept_apart else told_nothing(part) for part in told)


def told_little(part: Explained) -> bool:
    """Whether a part may explain less than MUCH, and seems to explain less than twice that."""
    least = part.less(DOUBT * part.error).without_noise
    return least < MUCH and part.without_noise < 2 * MUCH


def told_nothing(part: Explained) -> bool:
    """Whether a part tells nothing, although it would have been heard."""
    would_be_heard = part.signal > FAINTEST and TELLING * part.heard > HEARD * part.chance
    return would_be_heard and part.less(-DOUBT * part.error).without_noise < LITTLE
