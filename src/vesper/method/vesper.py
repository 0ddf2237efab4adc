"""The certified plan: progressive stages, class-aligned messages, one release a hop."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.mechanism.grid_gcn import GridGcn
from vesper.method.aggregators import NEEDS_DEGREES, RELEASES_SUMS
from vesper.method.budgeting import certified
from vesper.method.choices import degree_share_of, hops_for, members_of
from vesper.method.decoding import refuse_other_decoder
from vesper.method.encoding import encoder_shape_of
from vesper.method.enquiry import Terms
from vesper.method.method import Promise, Sizes
from vesper.method.poll import POLL_SHARE
from vesper.method.progressive import ProgressiveRepresentation
from vesper.method.settings import Config
from vesper.method.trial import asking_share
from vesper.model.decoder import CorrectingDecoder
from vesper.model.encoders import EncoderFactory, make_encoder
from vesper.model.normalized_encoder import normalized_for
from vesper.model.pre import MEMBERS_APART, PrivateRepresentationExtractor
from vesper.model.scaling import Scaling, bins_for
from vesper.party.representation import Representation


class VesperMethod:
    """Edges only through `Door.release`.

    Args:
        encoders: makes the encoder; any module that sees no edge will do.
    """

    name = "vesper"
    defaults: Mapping[str, object] = {}

    def __init__(self, encoders: EncoderFactory = make_encoder) -> None:
        self._encoders = encoders

    def hops(self, config: Config, sizes: Sizes) -> int:
        """As asked for, or from epsilon and public sizes."""
        return hops_for(config.privacy, sizes)

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """Split the budget over the hops."""
        aggregator = config.privacy.aggregator
        if aggregator in NEEDS_DEGREES and degree_share_of(config, sizes) == 0:
            raise InputError(f"aggregator: '{aggregator}' needs degree_share > 0, got 0")
        width = sizes.num_classes + 1
        if aggregator == "gcn-clamped":
            GridGcn(min_degree=config.privacy.min_degree).refuse_width(width)
        refuse_other_decoder(config)
        hops, asking = self.hops(config, sizes), partial(asking_share_of, config, sizes)
        return certified(config.privacy, sizes, releases=hops, width=width, asking=asking)

    def stages(self, config: Config, sizes: Sizes) -> int:
        """One more than releases."""
        return self.hops(config, sizes) + 1

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Encoder and heads, on releases."""
        run, hops = config.run, self.hops(config, sizes)
        promise = self.promise(config, sizes)
        scaling = Scaling(features, bins=bins_for(sizes.num_features))
        shape = encoder_shape_of(
            config,
            sizes,
            num_inputs=scaling.width,
            normalized=normalized_for(sizes.num_features),
        )
        seeds = [shape.seed + MEMBERS_APART * k for k in range(members_of(run, sizes))]
        extractor = PrivateRepresentationExtractor(
            [self._encoders(run.encoder, replace(shape, seed=seed)) for seed in seeds],
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
            noise_stds=promise.noise_stds,
            terms=Terms(
                noise_std=promise.poll_noise_std,
                trial_share=max(promise.asking_share - POLL_SHARE, 0.0),
                degree_share=degree_share_of(config, sizes),
                keeps_share=run.degree_share is not None,
                ordered=run.task in ("regression", "ranking"),
            ),
            aggregator=config.privacy.aggregator,
            min_degree=config.privacy.min_degree,
        )

    def label_side(self, config: Config, sizes: Sizes) -> CorrectingDecoder:
        """A correction of the received logits."""
        return CorrectingDecoder(
            num_classes=sizes.num_classes,
            stages=self.stages(config, sizes),
            members=members_of(config.run, sizes),
        )


def asking_share_of(config: Config, sizes: Sizes, noise_std: float) -> float:
    """Share of the budget for poll and trial, before the hops."""
    if not config.run.label_messages:
        return 0.0
    privacy = config.privacy
    if privacy.aggregator not in RELEASES_SUMS or privacy.privacy_unit != "edge":
        return POLL_SHARE
    return asking_share(noise_std, num_train=sizes.num_train, num_classes=sizes.num_classes)
