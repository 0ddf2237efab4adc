"""Relay: passing on received sums, where labelled nodes meet only through other nodes.

    one hop       it passes on what nodes received in the probe or, on a later graph without a
                  probe, in a release that takes a tenth of the hop's budget
    more hops     the first hop sums classes, as always; later hops pass on its sums

Users who pay the same merchants, people who share a device: what a merchant receives from its
customers informs them about each other, but the merchant's own class does not. The probe shows
whether labelled nodes are separated: they have neighbours, but hardly a labelled one among them.
`probe_decision` decides.
"""

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vesper.method.certified.fitted_constants import FittedConstants
from vesper.model.relayed_rows import (
    RelayTransform,
    class_rate,
    lacks_signal,
    mean_jacobian,
    rms_excess,
)
from vesper.party.representation import Nodes

MIXED_SHARE = 0.7
"""Nodes are separated if they have fewer labelled neighbours than this share of the number that
they would have if edges ignored labels."""
CLEAR_ERRORS = 1.5
"""Standard errors that this number must exceed, so that noise rarely looks like separation."""
CUT_LENGTH = 0.5
"""Norm above which a relayed excess is cut to 1, as a multiple of the root mean square norm."""
RELAY_INPUT_SHARE = 0.1
"""Share of the only hop's budget on a later graph for the sums that it passes on: about the
probe's share, so that they are about as noisy as in training."""


def are_separated(
    sums: NDArray[np.float32],
    labelled_nodes: Nodes,
    *,
    lengths: tuple[float, float],
    noise_std: float,
) -> bool:
    """Whether labelled nodes have neighbours, but hardly a labelled one among them.

        share     = ends of edges at labelled nodes / all ends
        expected  = MIXED_SHARE share degree,    and separated where expected - received > error

    Args:
        sums: (num_nodes, 2) sums over neighbours: labelled ones, all.
        labelled_nodes: the labelled nodes.
        lengths: norm of each of the two in messages.
        noise_std: noise in the sums.

    >>> pairs = np.array([[1, 1], [1, 1], [0, 1], [0, 1]], "f4")  # two labelled nodes, connected
    >>> are_separated(pairs, np.array([0, 1]), lengths=(1, 1), noise_std=0.0)
    False
    >>> shops = np.zeros((200, 2), "f4")  # a hundred labelled nodes have seven neighbours each
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
    by_chance = 2 * share * max(degree, 0.0)  # variance of the number of labelled neighbours
    error = math.sqrt((noise**2 + by_chance) / len(labelled_nodes))
    expected_count = MIXED_SHARE * share * degree
    return expected_count > CLEAR_ERRORS * error and expected_count - labelled_neighbors > error


def split_noise(noise_std: float) -> tuple[float, float]:
    """Return the noise of two releases, relay input and relay, that together cost as much as one.

    Both get slightly more noise than that, because charges are rounded up.

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
    """Builds messages that pass on received sums, and reads what they sum to.

    Args:
        constants: hold the rate, size and Jacobian of relayed messages once they are fitted.
        hops: number of hops.
    """

    def __init__(self, constants: FittedConstants, *, hops: int) -> None:
        self._constants, self._hops = constants, hops
        self._own: Tensor | None = None  # (num_nodes, num_classes)
        self._transform: RelayTransform | None = None

    def applies_before(self, stage: int) -> bool:
        """Whether the hop before a stage passes on received sums."""
        return bool(self._constants.relay) and (stage > 1 or self._hops == 1)

    def set_own_rows(self, own: Tensor) -> None:
        """Store the class rows that nodes contribute to the first hop: (num_nodes, num_classes)."""
        self._own = own

    def messages(self, sums: Tensor, *, degree_share: float, weights: Tensor) -> Tensor:
        """Build messages: (num_nodes, 1 + num_classes).

        Args:
            sums: (num_nodes, 1 + num_classes) received sums of degree and class rows.
            degree_share: c of these messages.
            weights: (num_nodes,) how strongly each node connects labelled nodes.
        """
        constants = self._constants
        if constants.relay_rate is None:
            constants.relay_rate = class_rate(sums)
        if constants.relay_size is None:
            constants.relay_size = float(rms_excess(sums, constants.relay_rate))
        length = max(CUT_LENGTH * constants.relay_size, 1e-6)
        if constants.relay_jacobian is None:
            constants.relay_jacobian = mean_jacobian(sums, constants.relay_rate, length, weights)
        self._transform = RelayTransform(
            rate=constants.relay_rate,
            length=length,
            jacobian=constants.relay_jacobian,
            degree_share=degree_share,
        )
        return self._transform.messages(sums)

    def read_sums(
        self, released: Tensor, *, labelled_nodes: Nodes, query_nodes: Nodes, noise_std: float
    ) -> Tensor | None:
        """Remove what returned to the nodes that contributed it; None if nothing was relayed.

        Where query nodes receive hardly any signal, the class sums of all nodes become 0.

        Args:
            released: (num_nodes, 1 + num_classes).
            labelled_nodes: nodes whose labels were in the first messages.
            query_nodes: nodes that predictions are wanted for, where they are known.
            noise_std: noise of the release.
        """
        transform, self._transform = self._transform, None
        if transform is None or self._own is None:
            return None
        cleared = transform.remove_own_message(released, self._own, noise_std=noise_std)
        if self._constants.query_nodes_lack_signal is None:
            self._constants.query_nodes_lack_signal = min(
                len(labelled_nodes), len(query_nodes)
            ) >= 2 and lacks_signal(
                cleared[labelled_nodes], cleared[query_nodes], noise_std=noise_std
            )
        if self._constants.query_nodes_lack_signal:
            cleared[:, 1:] = 0
        return cleared
