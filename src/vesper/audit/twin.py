"""A run of the paper's plan in two worlds at once, for the exact likelihood ratio of the two.

    real    the run as it happens:              rows = means + noise
    other   the same run in the other world, with the noise that would have produced equal rows:
            rows = other means + (rows - other means)

Both see the same rows, send the same embeddings and get the same gradients, so each has exactly the
weights that the data party would have in its world, given what the label party saw. Hence every row
is Gaussian with a known mean in both worlds, and

    log ratio = sum over rows of (|row - other mean|^2 - |row - real mean|^2) / (2 noise_std^2)

is the exact log likelihood ratio of the two worlds. It covers the rows of the edge's ends as well
as weights that have learned from raw edges. Rows are taken as the paper's Theorem 1 counts them:
after the noise, before activation. The ratio is exact for one layer without dropout and degrees of
at most D, where nothing else is hidden.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.graph.features import Features
from vesper.graph.graph import Graph
from vesper.mechanism.door import Door, OpenDoor
from vesper.mechanism.sampled import LayerNoise
from vesper.method.base import Method, NoisePlan, PublicSizes
from vesper.method.settings import Config
from vesper.party.representation import NO_NODES, Nodes, Representation, StatelessRepresentation
from vesper.simulation.recording import RecordingMethod, RecordingNoise, set_row_noise


class MatchingNoise(LayerNoise):
    """The noise that produces the same rows as in the real world."""

    means: Tensor

    def __init__(self, real: RecordingNoise) -> None:
        super().__init__(noise_std=real.noise_std, seed=0)
        self._real = real

    def perturb(self, rows: Tensor) -> Tensor:
        """Return the real world's rows; gradients flow as in the other world."""
        self.means = rows.detach()
        return self._real.newest.perturbed + (rows - self.means)


class TwinRepresentation(StatelessRepresentation):
    """Embeds in both worlds and returns the real embeddings; gradients reach both."""

    def __init__(
        self,
        real: Representation,
        other: Representation,
        *,
        noise: RecordingNoise,
        matching: MatchingNoise,
        num_nodes: int,
    ) -> None:
        self._real, self._other = real, other
        self._noise, self._matching = noise, matching
        self._modules = nn.ModuleList([real.module, other.module])
        self.log_ratios = np.zeros(num_nodes)
        """(num_nodes,) log likelihood ratio of the real world to the other, from rows so far."""
        self.mu_squared = np.zeros(num_nodes)
        """(num_nodes,) squared distance of the worlds in units of the noise, from rows so far."""

    @property
    def module(self) -> nn.Module:
        """Modules of both worlds."""
        return self._modules

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Pass the same labels to both worlds."""
        self._real.set_labels(nodes, label_posteriors, query_nodes)
        self._other.set_labels(nodes, label_posteriors, query_nodes)

    def begin_stage(self, stage: int) -> None:
        """Begin the stage in both worlds."""
        self._real.begin_stage(stage)
        self._other.begin_stage(stage)

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Embeddings of the real world: (B, width, depth)."""
        real = self._real.embed(nodes, training=training)
        other = self._other.embed(nodes, training=training)
        self._update_ratios(nodes)
        return real + (other - other.detach())

    def _update_ratios(self, nodes: Nodes) -> None:
        (layer,) = self._noise.take()
        rows, real = layer.perturbed.double(), layer.means.double()  # (B, width)
        other = self._matching.means.double()
        variance = self._noise.noise_std**2
        ratio = ((rows - other).square() - (rows - real).square()).sum(dim=1) / (2 * variance)
        self.log_ratios[nodes] += ratio.numpy()
        self.mu_squared[nodes] += ((real - other).square().sum(dim=1) / variance).numpy()


class TwinMethod(RecordingMethod):
    """A method of the paper's plan whose data side runs in two worlds.

    Args:
        method: the method itself.
        other: the graph of the other world.
        noise_seed: seed of the noise of this run.
    """

    twin: TwinRepresentation
    """Set when the run makes its representation."""

    def __init__(self, method: Method, *, other: Graph, noise_seed: int) -> None:
        super().__init__(method, noise_seed=noise_seed)
        self._other = other

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make the data side of both worlds."""
        real = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        other = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=OpenDoor(self._other)
        )
        noise_std = noise_plan.noise_stds[0]
        noise = RecordingNoise(LayerNoise(noise_std=noise_std, seed=self._noise_seed or 0))
        matching = MatchingNoise(noise)
        set_row_noise(real, noise)
        set_row_noise(other, matching)
        self.twin = TwinRepresentation(
            real, other, noise=noise, matching=matching, num_nodes=sizes.num_nodes
        )
        return self.twin
