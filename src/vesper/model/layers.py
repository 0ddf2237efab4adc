"""What extractors on sampled layers have in common: L weights of operator norm 1, and noise."""

from collections.abc import Iterator
from dataclasses import dataclass

from vesper.mechanism.sampled.noise import LayerNoise
from vesper.model.spectral import UnitWeight


@dataclass(frozen=True, kw_only=True)
class Layers:
    """What the layers of an extractor are made from."""

    width: int
    """Of rows, in and out."""
    num_layers: int
    """L."""
    exact: bool
    """Operator norms by singular values instead of one power iteration."""
    noise: LayerNoise | None
    """None for no noise and no privacy."""
    seed: int
    """Of all weights of the extractor, and of the first power iterations."""

    def unit_weights(self) -> Iterator[UnitWeight]:
        """One weight a layer, not yet drawn."""
        for layer in range(self.num_layers):
            yield UnitWeight(self.width, self.width, exact=self.exact, seed=self.seed + layer)
