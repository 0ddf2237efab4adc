"""The certified plan: progressive stages, class-aligned messages, one release a hop."""

from vesper.method.blueprint import Blueprint, Shape
from vesper.model.decoder import ConcatDecoder
from vesper.model.encoder import MlpEncoder, initialize
from vesper.model.pre import PrivateRepresentationExtractor


class VesperMethod:
    """Edges only through `mechanism.release`."""

    name = "vesper"
    plan = "certified"

    def hops(self, wanted: int) -> int:
        """As many as asked for."""
        return wanted

    def build(self, shape: Shape) -> Blueprint:
        """Encoder and heads at the data party, decoder at the label party."""
        encoder = MlpEncoder(
            shape.num_features, width=shape.width, dropout=shape.dropout, seed=shape.seed + 2
        )
        extractor = PrivateRepresentationExtractor(
            encoder,
            num_classes=shape.num_classes,
            hops=shape.hops,
            degree_share=shape.degree_share,
        )
        decoder = ConcatDecoder(
            num_classes=shape.num_classes, stages=shape.hops + 1, width=shape.width
        )
        initialize(extractor, shape.seed)
        initialize(decoder, shape.seed + 1)
        decoder.start_at_identity()
        return Blueprint(extractor=extractor, decoder=decoder)
