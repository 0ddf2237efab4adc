"""The certified method: stages that each add one release, with messages aligned to classes.

What it chooses if the user does not, from epsilon and public sizes alone:

| | two classes | more |
| --- | --- | --- |
| hops | 1 below epsilon 8, else 2 | 2 |
| degree share, unless the probe finds a better one | 0.6 | 0.3 |

Members: 4, or fewer (at least 1) if all together would see more than 200,000 training rows per
epoch.

Problems with a rare class are often sparse. There the degree itself is informative, and a second
hop would halve the budget of the first for little (docs/decisions/0005).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.mechanism.aggregations import GridGcn
from vesper.mechanism.door import Door
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.certified.probe import ProbeSettings
from vesper.method.certified.probe_size import probe_share
from vesper.method.certified.query_nodes import LABEL_REACH_SHARE
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.method.noise_plan import certified_plan
from vesper.method.options import (
    NEEDS_DEGREES,
    SUM_AGGREGATORS,
    encoder_shape_of,
    refuse_other_decoder,
)
from vesper.method.settings import Config, PrivacySettings, RunSettings
from vesper.model.decoders import CorrectingDecoder
from vesper.model.encoders import EncoderFactory, make_encoder, normalized_for
from vesper.model.feature_scaling import FeatureScaling, bins_for
from vesper.model.pre import MEMBER_SEED_STRIDE, PrivateRepresentationExtractor
from vesper.party.representation import Representation

TWO_HOPS_FROM = 8.0
MAX_MEMBERS = 4
MAX_ROWS = 200_000


def hops_for(privacy: PrivacySettings, sizes: PublicSizes) -> int:
    """Return the number of hops: as set, or by the table.

    >>> sizes = PublicSizes(num_nodes=9, num_train=5, num_features=3, num_classes=2)
    >>> hops_for(PrivacySettings(epsilon=4.0), sizes), hops_for(PrivacySettings(hops=3), sizes)
    (1, 3)
    """
    if privacy.hops is not None:
        return privacy.hops
    return 1 if sizes.num_classes == 2 and privacy.epsilon < TWO_HOPS_FROM else 2


def degree_share_of(config: Config, sizes: PublicSizes) -> float:
    """Return the degree share: as set, or by the table; 0 for a maximum, which shows no degree."""
    if config.run.degree_share is not None:
        return config.run.degree_share
    if config.privacy.aggregator == "max":
        return 0.0
    return 0.6 if sizes.num_classes == 2 else 0.3


def members_of(run: RunSettings, sizes: PublicSizes) -> int:
    """Return the number of ensemble members: as set, or by the number of training nodes."""
    return members_for(sizes.num_train) if run.members is None else run.members


def members_for(num_train: int) -> int:
    """Return the number of members that limits training to `MAX_ROWS` rows per epoch.

    >>> [members_for(num_train) for num_train in (1_000, 83_000, 196_000, 10**6)]
    [4, 2, 1, 1]
    """
    return max(1, min(MAX_MEMBERS, MAX_ROWS // max(num_train, 1)))


class CertifiedMethod:
    """The certified method: reads edges through `Door.release` only.

    Args:
        encoders: makes the encoder; any module that reads no edge will do.
    """

    name = "certified"
    defaults: Mapping[str, object] = {}

    def __init__(self, encoders: EncoderFactory = make_encoder) -> None:
        self._encoders = encoders

    def hops(self, config: Config, sizes: PublicSizes) -> int:
        """Return the number of hops: as set, or from epsilon and public sizes."""
        return hops_for(config.privacy, sizes)

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Split the budget between the probe and the hops."""
        aggregator = config.privacy.aggregator
        if aggregator in NEEDS_DEGREES and degree_share_of(config, sizes) == 0:
            raise InputError(f"aggregator: '{aggregator}' needs degree_share > 0, got 0")
        width = sizes.num_classes + 1
        if aggregator == "gcn-clamped":
            GridGcn(min_degree=config.privacy.min_degree).refuse_width(width)
        refuse_other_decoder(config)
        hops, share_for_probe = self.hops(config, sizes), partial(probe_share_of, config, sizes)
        return certified_plan(
            config.privacy, sizes, releases=hops, width=width, probe_share=share_for_probe
        )

    def stages(self, config: Config, sizes: PublicSizes) -> int:
        """Return the number of stages: one more than hops."""
        return self.hops(config, sizes) + 1

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make encoder and heads, which read releases."""
        run, hops = config.run, self.hops(config, sizes)
        scaling = FeatureScaling(features, bins=bins_for(sizes.num_features))
        shape = encoder_shape_of(
            config,
            sizes,
            num_inputs=scaling.width,
            normalized=normalized_for(sizes.num_features),
        )
        seeds = [shape.seed + MEMBER_SEED_STRIDE * k for k in range(members_of(run, sizes))]
        extractor = PrivateRepresentationExtractor(
            [self._encoders(run.encoder, replace(shape, seed=seed)) for seed in seeds],
            encoding_width=run.width,
            num_classes=sizes.num_classes,
            message_width=sizes.num_classes + 1,
            hops=hops,
            dropout=run.dropout,
            seed=run.seed,
        )
        return StagedRepresentation(
            extractor,
            scaling=scaling,
            features=features,
            door=door,
            noise_stds=noise_plan.noise_stds,
            probe_settings=ProbeSettings(
                noise_std=noise_plan.probe_noise_std,
                content_share=max(noise_plan.probe_share - LABEL_REACH_SHARE, 0.0),
                degree_share=degree_share_of(config, sizes),
                degree_share_is_fixed=run.degree_share is not None,
                ordered=run.task in ("regression", "ranking"),
            ),
            aggregator=config.privacy.aggregator,
            min_degree=config.privacy.min_degree,
        )

    def make_decoder(self, config: Config, sizes: PublicSizes) -> CorrectingDecoder:
        """Make the decoder: a correction of the received logits."""
        return CorrectingDecoder(
            num_classes=sizes.num_classes,
            stages=self.stages(config, sizes),
            members=members_of(config.run, sizes),
        )


def probe_share_of(config: Config, sizes: PublicSizes, noise_std: float) -> float:
    """Return the share of the budget for the probe."""
    if not config.run.label_messages:
        return 0.0
    privacy = config.privacy
    if privacy.aggregator not in SUM_AGGREGATORS or privacy.privacy_unit != "edge":
        return LABEL_REACH_SHARE
    return probe_share(noise_std, num_train=sizes.num_train, num_classes=sizes.num_classes)
