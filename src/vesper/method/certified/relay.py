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

from vesper.method.base import FittedConstants
from vesper.method.certified.evidence import MIN_SIGNAL, ExplainedShare
from vesper.model.relayed_rows import (
    RelayTransform,
    class_rate,
    lacks_signal,
    mean_jacobian,
    rms_excess,
)
from vesper.party.representation import Nodes

MIXED_SHARE = 0.7
"""Who hears fewer than so many of the speakers that it would hear by chance is kept apart."""
CLEAR_ERRORS = 1.5
"""Errors that these are at least, so that an error alone hardly passes for it."""


def are_separated(
    sums: NDArray[np.float32],
    labelled_nodes: Nodes,
    *,
    lengths: tuple[float, float],
    noise_std: float,
) -> bool:
    """Whether speakers have neighbours, and hardly a speaker among them.

    Args:
        sums: (num_nodes, 2) sums over neighbours: those that speak, all.
        labelled_nodes: who speaks.
        lengths: with which either was said.
        noise_std: in the sums.

    >>> pairs = np.array([[1, 1], [1, 1], [0, 1], [0, 1]], "f4")  # two speakers, who are neighbours
    >>> are_separated(pairs, np.array([0, 1]), lengths=(1, 1), noise_std=0.0)
    False
    >>> shops = np.zeros((200, 2), "f4")  # a hundred speakers have seven neighbours each
    >>> shops[:100], shops[100:] = (0, 7), (7, 7)
    >>> are_separated(shops, np.arange(100), lengths=(1, 1), noise_std=0.0)
    True
    >>> are_separated(shops, np.arange(100), lengths=(1, 1), noise_std=20.0)
    False
    """
    means = sums[labelled_nodes].mean(axis=0, dtype=np.float64)  # (2,)
    labelled_neighbors, degree = float(means[0]) / lengths[0], float(means[1]) / lengths[1]
    all_ends = float(sums[:, 1].sum(dtype=np.float64)) / lengths[1]
    share = min(max(len(labelled_nodes) * degree / max(all_ends, 1e-6), 0.0), 1.0)
    noise = math.hypot(1 / lengths[0], MIXED_SHARE * share / lengths[1]) * noise_std
    by_chance = 2 * share * max(degree, 0.0)  # variance of the speakers that a node knows
    error = math.sqrt((noise**2 + by_chance) / len(labelled_nodes))
    expected_count = MIXED_SHARE * share * degree
    return expected_count > CLEAR_ERRORS * error and expected_count - labelled_neighbors > error


CUT_LENGTH = 0.5
"""Of what is typically heard in excess: who heard more is cut to length 1."""
RELAY_INPUT_SHARE = 0.1
"""Of the budget of the only hop on a later graph, for what is then handed on; about what the trial
has, and a little more, so that noise is not further from that of training than it must be."""


def split_noise(noise_std: float) -> tuple[float, float]:
    """Noise of listening and of handing on that cost what one release with this noise costs.

    A little more: what is charged is rounded up.

    >>> first, second = split_noise(2.0)
    >>> 0 < 1 / 2.0**2 - (1 / first**2 + 1 / second**2) < 1e-6
    True
    """
    spare = 1 + 1e-6
    return (
        spare * noise_std / math.sqrt(RELAY_INPUT_SHARE),
        spare * noise_std / math.sqrt(1 - RELAY_INPUT_SHARE),
    )


class Relay:
    """What is handed on in which hop.

    Args:
        fitted: where what is fitted stands.
        hops: how many there will be.
    """

    def __init__(self, constants: FittedConstants, *, hops: int) -> None:
        self._constants, self._hops = constants, hops
        self._own: Tensor | None = None  # (num_nodes, num_classes)
        self._transform: RelayTransform | None = None
        self._weights: Tensor | None = None  # (num_nodes,)

    @property
    def is_active(self) -> bool:
        """Whether the trial found that it is worth it."""
        return self._constants.get("relay") is not None

    def activate(self) -> None:
        """Hand on from now on, on every graph."""
        self._constants.fit_once("relay", partial(torch.tensor, True))

    def set_weights(self, weights: Tensor) -> None:
        """Take through whom speakers know one another: (num_nodes,) speakers that each hears."""
        self._weights = weights

    def applies_before(self, stage: int) -> bool:
        """Whether nodes hand on what they have heard in the hop before a stage."""
        return self.is_active and (stage > 1 or self._hops == 1)

    def set_own_rows(self, own: Tensor) -> None:
        """Remember what nodes say themselves before the first hop: (num_nodes, num_classes)."""
        self._own = own

    def messages(self, sums: Tensor, *, degree_share: float) -> Tensor:
        """What all nodes say: (num_nodes, 1 + num_classes).

        Args:
            sums: (num_nodes, 1 + num_classes) sums of degree and classes, of rows of length 1.
            degree_share: c of these messages.
        """
        rate = self._constants.fit_once("relay_rate", partial(class_rate, sums))
        size = self._constants.fit_once("relay_size", partial(rms_excess, sums, rate))
        length = max(CUT_LENGTH * float(size), 1e-6)
        weights = sums[:, 0] if self._weights is None else self._weights
        jacobian = self._constants.fit_once(
            "relay_jacobian", partial(mean_jacobian, sums, rate, length, weights)
        )
        self._transform = RelayTransform(
            rate=rate, length=length, jacobian=jacobian, degree_share=degree_share
        )
        return self._transform.messages(sums)

    def read_sums(
        self, released: Tensor, *, labelled_nodes: Nodes, query_nodes: Nodes, noise_std: float
    ) -> Tensor | None:
        """Take off what nodes had said themselves; None where nothing was handed on.

        All but degrees is left out where those who will be asked for hear nothing of the kind.

        Args:
            released: (num_nodes, 1 + num_classes).
            labelled_nodes: who had said a label.
            query_nodes: nodes that predictions are wanted for, where they are known.
            noise_std: of the release.
        """
        transform, self._transform = self._transform, None
        if transform is None or self._own is None:
            return None
        cleared = transform.remove_own_message(released, self._own, noise_std=noise_std)

        def query_nodes_lack_signal() -> Tensor:
            if min(len(labelled_nodes), len(query_nodes)) < 2:
                return torch.tensor(False)
            return torch.tensor(
                lacks_signal(cleared[labelled_nodes], cleared[query_nodes], noise_std=noise_std)
            )

        if self._constants.fit_once("query_nodes_lack_signal", query_nodes_lack_signal):
            cleared[:, 1:] = 0
        return cleared


def unscaled_sums(released: Sequence[Tensor], *, degree_share: float) -> Tensor:
    """Sums of rows (c, sqrt(1 - c^2) row) in the first hop as sums of (1, row)."""
    first = released[0]
    lengths = torch.full((first.shape[1],), (1 - degree_share**2) ** 0.5)
    lengths[0] = degree_share
    return first / lengths


MUCH_EXPLAINED = 0.1
"""Of labels; it may be a chance of what the few say through whom many know one another."""
INFORMATIVE_SHARE = 0.05
"""Of labels, that something which tells explains without noise."""
LITTLE_EXPLAINED = 0.015
"""Of labels."""
DETECTABLE_DEVIATIONS = 15.0
"""Deviations of chance with which something that tells would be heard, to conclude from silence."""
DOUBT_ERRORS = 2.0
"""Errors by which a share may be larger, or smaller, than it seems."""


def should_relay(
    parts: Sequence[ExplainedShare], *, degree: ExplainedShare, separated: bool
) -> bool:
    """Whether neighbours should hand on what they have heard.

    Args:
        parts: what they say of themselves explains, beside the degree.
        degree: what that explains.
        separated: speakers hardly hear a speaker (`relay`).
    """
    most = MUCH_EXPLAINED if separated else INFORMATIVE_SHARE
    if degree.reduced_by(degree.error).without_noise >= most:
        return False  # it is in every message, and would have to share it with more
    return all(explains_little(part) if separated else explains_nothing(part) for part in parts)


def explains_little(part: ExplainedShare) -> bool:
    """Whether a part may explain less than MUCH, and seems to explain less than twice that."""
    least = part.reduced_by(DOUBT_ERRORS * part.error).without_noise
    return least < MUCH_EXPLAINED and part.without_noise < 2 * MUCH_EXPLAINED


def explains_nothing(part: ExplainedShare) -> bool:
    """Whether a part tells nothing, although it would have been heard."""
    would_be_detected = (
        part.signal > MIN_SIGNAL
        and INFORMATIVE_SHARE * part.signal_fraction > DETECTABLE_DEVIATIONS * part.null_std
    )
    return (
        would_be_detected
        and part.reduced_by(-DOUBT_ERRORS * part.error).without_noise < LITTLE_EXPLAINED
    )
