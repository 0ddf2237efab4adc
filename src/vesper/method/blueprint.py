"""The interface of all methods: settings in, the modules of both sides out."""

from dataclasses import dataclass
from typing import Protocol

from vesper.model.decoder import ConcatDecoder
from vesper.model.pre import PrivateRepresentationExtractor


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Public sizes a method may depend on; anything computed from edges may not be in here."""

    num_features: int
    num_classes: int
    width: int
    hops: int
    degree_share: float
    dropout: float
    seed: int


@dataclass(frozen=True)
class Blueprint:
    """The modules of both sides, with weights drawn from the seed."""

    extractor: PrivateRepresentationExtractor
    decoder: ConcatDecoder


class Method(Protocol):
    """One way to learn."""

    name: str
    plan: str
    """`certified`, `paper` (claimed only), `edge-free` (no edge is read) or `none`."""

    def hops(self, wanted: int) -> int:
        """How many releases of the graph the method makes when `wanted` hops are asked for."""

    def build(self, shape: Shape) -> Blueprint:
        """Make the modules."""
