"""The certified plan: progressive stages, class-aligned messages, one release a hop."""

from collections.abc import Mapping

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.budgeting import certified
from vesper.method.method import Promise, Sizes
from vesper.method.progressive import ProgressiveRepresentation
from vesper.method.settings import Config
from vesper.model.decoder import CorrectingDecoder
from vesper.model.encoder import MlpEncoder
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.model.scaling import Scaling
from vesper.party.representation import Representation


class VesperMethod:
    """Edges only through `Door.release`."""

    name = "vesper"
    defaults: Mapping[str, object] = {}

    def hops(self, config: Config) -> int:
        """As asked for, or from epsilon: a second hop pays only when the first is not drowned."""
        if config.privacy.hops is not None:
            return config.privacy.hops
        return 2

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """Split the budget over the hops."""
        return certified(config.privacy, sizes, releases=self.hops(config))

    def stages(self, config: Config, sizes: Sizes) -> int:
        """One more than releases."""
        return self.hops(config) + 1

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Encoder and heads, on releases."""
        run, hops = config.run, self.hops(config)
        scaling = Scaling(features)
        encoder = MlpEncoder(scaling.width, width=run.width, dropout=run.dropout, seed=run.seed + 2)
        extractor = PrivateRepresentationExtractor(
            encoder,
            encoding_width=run.width,
            num_classes=sizes.num_classes,
            message_width=sizes.num_classes + 1,
            hops=hops,
            dropout=run.dropout,
            seed=run.seed,
        )
        return ProgressiveRepresentation(
            extractor,
            scaling=scaling,
            features=features,
            door=door,
            noise_stds=self.promise(config, sizes).noise_stds,
            degree_share=run.degree_share,
        )

    def label_side(self, config: Config, sizes: Sizes) -> CorrectingDecoder:
        """A correction of the received logits."""
        return CorrectingDecoder(
            num_classes=sizes.num_classes,
            stages=self.stages(config, sizes),
            width=config.run.width,
            seed=config.run.seed + 1,
        )
