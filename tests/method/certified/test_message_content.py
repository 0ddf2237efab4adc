"""The content of messages: what explains labels is found, and noise is not."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vesper.method.certified.message_content import MessageContent, PartSums, choose_content
from vesper.method.certified.probe_size import PartLengths

Doubles = NDArray[np.float64]
TRAIN = 2000
NOISE, NEXT_NOISE = 6.3, 2.0
SIGN: Doubles = np.where(np.arange(TRAIN) % 2 == 0, 1.0, -1.0)


def sums(rng: np.random.Generator, degree: float, classes: float, features: float) -> PartSums:
    """Sums of three parts, each with this much signal per unit of noise."""

    def part(signal: float, width: int) -> Doubles:
        received = rng.normal(size=(TRAIN, width))
        received[:, 0] += signal * SIGN
        return NOISE * received

    return PartSums(
        degree=part(degree, 1),
        classes=part(classes, 2),
        features=part(features, 8),
        noise_std=NOISE,
    )


def content_of(
    degree: float,
    classes: float,
    features: float,
    *,
    seed: int = 0,
    next_noise_std: float = NEXT_NOISE,
) -> MessageContent:
    return choose_content(
        np.column_stack([SIGN, -SIGN]),
        sums(np.random.default_rng(seed), degree, classes, features),
        lengths=PartLengths.for_share(0.1),
        next_noise_std=next_noise_std,
        default_share=0.6,
    )


def is_projected(degree: float, classes: float, features: float, *, seed: int = 0) -> bool:
    return content_of(degree, classes, features, seed=seed).projection is not None


def test_features_are_projected_only_where_they_lead_beyond_chance() -> None:
    assert is_projected(0.0, 0.0, 0.3)
    assert not is_projected(0.0, 0.3, 0.0)
    assert not is_projected(0.0, 0.3, 0.3), "no lead"
    by_chance = sum(is_projected(0.0, 0.0, 0.0, seed=seed) for seed in range(200))
    assert by_chance <= 24, "nothing is lost where nothing explains anything"
    assert not any(is_projected(0.0, 0.1, 0.0, seed=seed) for seed in range(100))


def test_later_hops_are_projected_too_where_classes_explain_nothing() -> None:
    assert content_of(0.0, 0.0, 0.3).project_later_hops
    assert not content_of(0.0, 0.15, 0.5).project_later_hops
    assert content_of(0.0, 0.15, 0.5).projection is not None
    assert not content_of(0.0, 0.0, 0.0).project_later_hops


def test_one_informative_feature_of_eight_is_projected_alone() -> None:
    coefficients = content_of(0.0, 0.0, 0.4).projection
    assert coefficients is not None
    assert np.flatnonzero(coefficients[:, 0]).tolist() == [0]


def test_the_degree_share_follows_what_explains_labels() -> None:
    assert content_of(0.3, 0.0, 0.0).degree_share > 0.6
    assert content_of(0.0, 0.3, 0.0).degree_share < 0.6
    assert content_of(0.0, 0.0, 0.3).degree_share < 0.6
    assert content_of(0.0, 0.0, 0.0).degree_share == 0.6
    assert content_of(0.3, 0.0, 0.0, next_noise_std=0.5).degree_share == 0.6, "nothing to gain"


def test_a_relay_has_the_default_degree_share() -> None:
    rng = np.random.default_rng(0)
    parts = PartSums(
        degree=NOISE * (1.2 * rng.normal(size=(TRAIN, 1)) + 0.2 * SIGN[:, None]),  # a little signal
        classes=NOISE * 1.5 * rng.normal(size=(TRAIN, 2)),
        features=NOISE * rng.normal(size=(TRAIN, 8)),
        noise_std=NOISE,
    )
    choose_with = partial(
        choose_content,
        np.column_stack([SIGN, -SIGN]),
        parts,
        lengths=PartLengths.for_share(0.1),
        next_noise_std=NEXT_NOISE,
        default_share=0.6,
    )
    alone = choose_with(separated=True, can_relay=False)
    assert not alone.relay
    assert alone.degree_share == choose_with().degree_share != 0.6
    relayed = choose_with(separated=True, can_relay=True)
    assert relayed.relay
    assert relayed.degree_share == 0.6, "relayed sums were not compared with the degree"
