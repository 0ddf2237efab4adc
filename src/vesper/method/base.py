"""Interface of all methods: settings and public sizes in, the parts of both parties out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.settings import Config
from vesper.model.decoders import Decoder
from vesper.party.representation import Representation


@dataclass(frozen=True, kw_only=True)
class PublicSizes:
    """Public sizes that a method may depend on; nothing in here is computed from edges."""

    num_nodes: int
    num_train: int
    num_features: int
    num_classes: int


@dataclass(frozen=True, kw_only=True)
class NoisePlan:
    """Noise of every release of a run and what it guarantees, known before any data is read."""

    plan: str
    """`certified`, `paper` (claimed only), `edge-free` (no edge is read) or `none`."""
    certified_epsilon: float | None
    claimed_epsilon: float | None
    delta: float | None
    noise_stds: tuple[float, ...]
    """Noise standard deviation of each release or layer, in order."""
    probe_noise_std: float | None = None
    """Noise of the probe before them (`method.certified.probe`); None if there is no probe."""
    probe_share: float = 0.0
    """Share of the budget for the probe."""
    releases: int | None = None
    """Number of releases, if they do not have one noise_std each."""
    layers: int | None = None
    """Number of layers, if they do not have one noise_std each."""
    width: int = 0
    """Width of the messages, if their clipping and rounding depend on it."""
    unit: str = "edge"
    """Unit of privacy: one `edge`, or all edges of one `node`."""
    worth_epsilon: float | None = None
    """Epsilon that the noise of a claimed plan really certifies, if it is known."""

    @property
    def all_noise_stds(self) -> tuple[float, ...]:
        """Noise of everything that is released, including the probe, in order."""
        probe = () if self.probe_noise_std is None else (self.probe_noise_std,)
        return probe + self.noise_stds

    @property
    def hops(self) -> int | None:
        """Number of layers or hops: `layers`, or one per noise_std; None if there are none."""
        return self.layers or len(self.noise_stds) or None


class Method(Protocol):
    """A way to train a model, and what it releases."""

    name: str
    defaults: Mapping[str, object]
    """Default settings of the method, where they differ from those of `Config`."""

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Compute the noise from the budget."""

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """Return the number of stages: each trains on top of the ones before."""

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make the data party's part; `noise_plan` is that of the run."""

    def make_decoder(self, config: Config, sizes: PublicSizes) -> Decoder:
        """Make the label party's part."""
