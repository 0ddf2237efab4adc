"""The interface of all methods: settings and public sizes in, the parts of both sides out."""

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
    """Public sizes a method may depend on; anything computed from edges may not be in here."""

    num_nodes: int
    num_train: int
    num_features: int
    num_classes: int


@dataclass(frozen=True, kw_only=True)
class NoisePlan:
    """What a method will do with edges and what that is worth, known before any data is read."""

    plan: str
    """`certified`, `paper` (claimed only), `edge-free` (no edge is read) or `none`."""
    certified_epsilon: float | None
    claimed_epsilon: float | None
    delta: float | None
    noise_stds: tuple[float, ...]
    """Of each release or layer, in order."""
    probe_noise_std: float | None = None
    """Of the poll before them (`method.certified.label_reach`); None: there is none."""
    probe_share: float = 0.0
    """Of the budget, for that release."""
    releases: int | None = None
    """How many, where they have no noise_std each."""
    layers: int | None = None
    """How many, where they have no noise_std each."""
    width: int = 0
    """Of the messages of releases, where they are clipped and rounded by it."""
    unit: str = "edge"
    """Of what is protected: one `edge`, or all edges of one `node`."""
    worth_epsilon: float | None = None
    """What noise that is claimed for really certifies, where that is known."""

    @property
    def all_noise_stds(self) -> tuple[float, ...]:
        """Of everything that is released, the poll too, in order."""
        probe = () if self.probe_noise_std is None else (self.probe_noise_std,)
        return probe + self.noise_stds

    @property
    def hops(self) -> int | None:
        """Layers, or hops: one a noise_std where nothing else is said; None: there are none."""
        return self.layers or len(self.noise_stds) or None


class Method(Protocol):
    """One way to learn."""

    name: str
    defaults: Mapping[str, object]
    """Settings it starts from, where they differ from those of `Config`."""

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Fix noise from the budget."""

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """How many times training starts anew on top of what came before."""

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make the data party's part; the noise plan is that of the run."""

    def make_decoder(self, config: Config, sizes: PublicSizes) -> Decoder:
        """Make the label party's part."""
