"""Sums from the probe's release that the first hop uses again.

    the first hop contains classes    both releases are averaged, each column by its precision
    the only hop passes on sums       these are what it passes on

This costs nothing: the probe was already charged.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vesper.method.certified.probe import ProbeRelease

CLEAR_ERRORS = 4.0
"""Standard errors above which a sum over all nodes is more than noise."""


@dataclass(frozen=True, eq=False)
class ReceivedSums:
    """Sums of degree and classes, scaled as if both had norm 1 in messages, with their noise."""

    sums: Tensor  # (num_nodes, 1 + num_classes)
    noise_stds: Tensor  # (1 + num_classes,)
    labelled_neighbors: Tensor  # (num_nodes,)
    """Labelled neighbours of each node or, where noise hides them, all neighbours."""

    def combined_with(self, released: Tensor, *, degree_share: float, noise_std: float) -> Tensor:
        """Average with a release of the same messages, in place: these sums are used once.

        Args:
            released: (num_nodes, 1 + num_classes).
            degree_share: c of its messages, (c, sqrt(1 - c^2) class row).
            noise_std: noise in it.
        """
        if noise_std == 0:
            return released
        lengths = torch.full_like(self.noise_stds, (1 - degree_share**2) ** 0.5)
        lengths[0] = degree_share
        own_variance = (lengths * self.noise_stds).square()
        # In place, as there may be no memory for a third copy.
        self.sums.mul_(lengths)
        self.sums.lerp_(
            released, (own_variance / (noise_std**2 + own_variance)).expand_as(released)
        )
        return self.sums


def received_in_probe(release: ProbeRelease) -> ReceivedSums:
    """Take the sums of degree and classes out of the probe's release."""
    lengths, num_classes = release.lengths, release.num_classes
    part_lengths = torch.tensor([lengths.degree] + [lengths.classes] * num_classes)
    return ReceivedSums(
        torch.from_numpy(release.rows[:, 1 : 2 + num_classes]) / part_lengths,
        release.noise_std / part_lengths,
        _labelled_neighbors(release),
    )


def received_in_hop(released: Tensor, *, degree_share: float) -> ReceivedSums:
    """Take the sums out of a release of messages (c, sqrt(1 - c^2) class row)."""
    sums = unscaled_sums(released, degree_share=degree_share)
    return ReceivedSums(sums, torch.zeros(sums.shape[1]), sums[:, 0])


def unscaled_sums(released: Tensor, *, degree_share: float) -> Tensor:
    """Scale sums of messages (c, sqrt(1 - c^2) row) to sums of (1, row)."""
    lengths = torch.full((released.shape[1],), (1 - degree_share**2) ** 0.5)
    lengths[0] = degree_share
    return released / lengths


def _labelled_neighbors(release: ProbeRelease) -> Tensor:
    length = release.lengths.label_reach
    labelled_neighbors = torch.from_numpy(release.rows[:, 0] / length)
    noise = release.noise_std / length * len(release.rows) ** 0.5
    is_clear = float(labelled_neighbors.sum(dtype=torch.float64)) > CLEAR_ERRORS * noise
    return labelled_neighbors if is_clear else torch.from_numpy(release.rows[:, 1].copy())
