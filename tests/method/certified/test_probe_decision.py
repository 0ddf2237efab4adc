"""The trial finds what tells, and says nothing where there is nothing to be found."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.method.certified.label_reach import LABEL_REACH_SHARE
from vesper.method.certified.probe_decision import (
    MAX_CONTENT_SHARE,
    ContentDecision,
    PartLengths,
    PartSums,
    content_share,
    decide_content,
    evidence_of,
    probe_share,
)

Exact = NDArray[np.float64]
TRAIN = 2000
NOISE, NEXT_NOISE = 6.3, 2.0
SIGN: Exact = np.where(np.arange(TRAIN) % 2 == 0, 1.0, -1.0)


@pytest.mark.parametrize("share", [1e-4, 0.014, 0.1])
def test_a_message_of_all_parts_has_norm_one(share: float) -> None:
    lengths = PartLengths.for_share(share)
    parts = (lengths.label_reach, lengths.degree, lengths.classes, lengths.features)
    assert math.hypot(*parts) == pytest.approx(1)
    assert lengths.label_reach**2 * (LABEL_REACH_SHARE + share) == pytest.approx(LABEL_REACH_SHARE)


def test_the_share_falls_with_training_nodes_and_ends_where_nothing_is_learned() -> None:
    nodes = (10, 1_000, 100_000, 10_000_000)
    shares = [content_share(2.0, num_train=n, num_classes=3) for n in nodes]
    assert shares[0] == 0
    assert shares[1] == MAX_CONTENT_SHARE
    assert MAX_CONTENT_SHARE > shares[2] > shares[3] > 0
    assert content_share(1e6, num_train=10_000, num_classes=3) == 0
    assert content_share(0.0, num_train=1_000, num_classes=3) == MAX_CONTENT_SHARE
    assert content_share(0.0, num_train=1_000, num_classes=200) == 0, "too few nodes a column"
    assert probe_share(2.0, num_train=10, num_classes=3) == LABEL_REACH_SHARE
    few, fewer = (content_share(noise, num_train=5_000, num_classes=3) for noise in (1.0, 0.1))
    assert few == fewer == 0.05, "little noise is no reason to ask less"


def heard(rng: np.random.Generator, degree: float, classes: float, features: float) -> PartSums:
    """Three parts of which each says so much of what is to be explained, for noise of size 1."""

    def part(says: float, width: int) -> Exact:
        said = rng.normal(size=(TRAIN, width))
        said[:, 0] += says * SIGN
        return NOISE * said

    return PartSums(
        degree=part(degree, 1),
        classes=part(classes, 2),
        features=part(features, 8),
        noise_std=NOISE,
    )


def found_of(*says: float, seed: int = 0, next_noise_std: float = NEXT_NOISE) -> ContentDecision:
    return decide_content(
        np.column_stack([SIGN, -SIGN]),
        heard(np.random.default_rng(seed), *says),
        lengths=PartLengths.for_share(0.1),
        next_noise_std=next_noise_std,
        default=0.6,
    )


def judged(*says: float, seed: int = 0) -> tuple[bool, float]:
    found = found_of(*says, seed=seed)
    return found.projection is not None, found.degree_share


def test_features_vote_only_where_they_are_ahead_beyond_chance() -> None:
    assert judged(0.0, 0.0, 0.3)[0]
    assert not judged(0.0, 0.3, 0.0)[0]
    assert not judged(0.0, 0.3, 0.3)[0], "not ahead"
    by_chance = sum(judged(0.0, 0.0, 0.0, seed=seed)[0] for seed in range(200))
    assert by_chance <= 6
    assert not any(judged(0.0, 0.1, 0.0, seed=seed)[0] for seed in range(100)), "classes tell"


def test_later_hops_vote_too_where_classes_tell_nothing() -> None:
    assert found_of(0.0, 0.0, 0.3).project_later_hops
    assert not found_of(0.0, 0.15, 0.5).project_later_hops
    assert found_of(0.0, 0.15, 0.5).projection is not None
    assert not found_of(0.0, 0.0, 0.0).project_later_hops


def test_one_feature_of_eight_votes_alone() -> None:
    votes = found_of(0.0, 0.0, 0.4).projection
    assert votes is not None
    assert np.flatnonzero(votes[:, 0]).tolist() == [0]


def test_evidence_falls_with_noise() -> None:
    lengths = PartLengths.for_share(0.1)
    some, less = (evidence_of(2_000, lengths=lengths, noise_std=noise) for noise in (2.0, 4.0))
    assert some == pytest.approx(4 * less)
    assert math.isinf(evidence_of(2_000, lengths=lengths, noise_std=0.0))


def test_the_degree_share_is_found_too() -> None:
    assert judged(0.3, 0.0, 0.0)[1] > 0.6
    assert judged(0.0, 0.3, 0.0)[1] < 0.6
    assert judged(0.0, 0.0, 0.3)[1] < 0.6, "votes are weighed as classes are"
    assert judged(0.0, 0.0, 0.0)[1] == 0.6
    assert found_of(0.3, 0.0, 0.0, next_noise_std=0.5).degree_share == 0.6, "nothing to gain"


def test_where_nothing_can_be_handed_on_the_degree_share_that_was_found_stays() -> None:
    rng = np.random.default_rng(0)
    parts = PartSums(
        degree=NOISE * (1.2 * rng.normal(size=(TRAIN, 1)) + 0.2 * SIGN[:, None]),  # tells a little
        classes=NOISE * 1.5 * rng.normal(size=(TRAIN, 2)),
        features=NOISE * rng.normal(size=(TRAIN, 8)),
        noise_std=NOISE,
    )
    judged_with = partial(
        decide_content,
        np.column_stack([SIGN, -SIGN]),
        parts,
        lengths=PartLengths.for_share(0.1),
        next_noise_std=NEXT_NOISE,
        default=0.6,
    )
    alone = judged_with(separated=True, can_relay=False)
    assert not alone.relay
    assert alone.degree_share == judged_with().degree_share != 0.6
    relayed = judged_with(separated=True, can_relay=True)
    assert relayed.relay
    assert relayed.degree_share == 0.6, "what is handed on is not what was weighed against it"
