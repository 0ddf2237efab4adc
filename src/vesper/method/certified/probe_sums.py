"""What is heard before the first hop.

the first hop says the same     both are averaged, each column by how exact it is
the only hop hands on           it is what is handed on

It was paid for like any release.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vesper.errors import VesperError
from vesper.mechanism.door import Door
from vesper.method.certified.relay import split_noise, unscaled_sums


@dataclass(frozen=True, eq=False)
class ProbeSums:
    """Sums of degree and classes, of length 1 each, and the noise in both."""

    sums: Tensor  # (num_nodes, 1 + num_classes)
    noise_stds: Tensor  # (1 + num_classes,)
    labelled_neighbors: Tensor  # (num_nodes,)
    """How many speakers a node hears, or, where noise drowns that, neighbours."""

    def combined_with(self, released: Tensor, *, degree_share: float, noise_std: float) -> Tensor:
        """Average with a release of the same messages, each column by how exact it is; once.

        Args:
            released: (num_nodes, 1 + num_classes).
            degree_share: c of its messages, (c, sqrt(1 - c^2) class row).
            noise_std: of it.
        """
        if noise_std == 0:
            return released
        lengths = torch.full_like(self.noise_stds, (1 - degree_share**2) ** 0.5)
        lengths[0] = degree_share
        own_variance = (lengths * self.noise_stds).square()
        # In place, for there may be no room for a third copy: these sums are not needed again.
        self.sums.mul_(lengths)
        self.sums.lerp_(
            released, (own_variance / (noise_std**2 + own_variance)).expand_as(released)
        )
        return self.sums


class PendingProbeSums:
    """Keeps it until the first hop has used it."""

    def __init__(self) -> None:
        self._sums: ProbeSums | None = None

    @property
    def has_sums(self) -> bool:
        """Whether there is something."""
        return self._sums is not None

    @property
    def sums(self) -> Tensor:
        """Of degree and classes, of length 1 each: (num_nodes, 1 + num_classes)."""
        if self._sums is None:
            raise VesperError("nothing was heard that could be handed on; begin a new run")
        return self._sums.sums

    def put(self, probe_sums: ProbeSums | None) -> None:
        """Take what the trial heard, if it heard classes."""
        self._sums = probe_sums

    def release_relay_input(
        self, door: Door, messages: Tensor, *, degree_share: float, noise_std: float
    ) -> float:
        """Hear classes where no trial has.

        Args:
            door: to the edges.
            messages: (num_nodes, 1 + num_classes).
            degree_share: c of these.
            noise_std: that was planned for the only hop.

        Returns:
            The noise that is left for the hop.
        """
        first, rest = split_noise(noise_std)
        released = torch.from_numpy(door.release(messages.numpy(), noise_std=first))
        sums = unscaled_sums([released], degree_share=degree_share)
        self._sums = ProbeSums(sums, torch.zeros(sums.shape[1]), sums[:, 0])
        return rest

    def combined_with(self, released: Tensor, *, degree_share: float, noise_std: float) -> Tensor:
        """Average into the first hop what was heard of the same messages, and forget it."""
        probe_sums, self._sums = self._sums, None
        if probe_sums is None:
            return released
        return probe_sums.combined_with(released, degree_share=degree_share, noise_std=noise_std)
