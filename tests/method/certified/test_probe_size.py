"""The probe takes a small share of the budget, and none where it would show nothing."""

import math

import pytest

from vesper.method.certified.probe_size import (
    MAX_CONTENT_SHARE,
    PartLengths,
    content_share,
    feature_evidence,
    probe_share,
)
from vesper.method.certified.query_nodes import LABEL_REACH_SHARE


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.014, 0.1])
def test_a_message_of_all_parts_has_norm_one(share: float) -> None:
    lengths = PartLengths.for_share(share)
    parts = (lengths.label_reach, lengths.degree, lengths.classes, lengths.features)
    assert math.hypot(*parts) == pytest.approx(1)
    assert lengths.label_reach**2 * (LABEL_REACH_SHARE + share) == pytest.approx(LABEL_REACH_SHARE)


def test_the_share_falls_with_training_nodes_and_is_zero_where_it_shows_nothing() -> None:
    nodes = (10, 1_000, 100_000, 10_000_000)
    shares = [content_share(2.0, num_train=n, num_classes=3) for n in nodes]
    assert shares[0] == 0
    assert shares[1] == MAX_CONTENT_SHARE
    assert MAX_CONTENT_SHARE > shares[2] > shares[3] > 0
    assert content_share(1e6, num_train=10_000, num_classes=3) == 0
    assert content_share(0.0, num_train=1_000, num_classes=3) == MAX_CONTENT_SHARE
    assert content_share(0.0, num_train=1_000, num_classes=200) == 0, "too few nodes per column"
    assert probe_share(2.0, num_train=10, num_classes=3) == LABEL_REACH_SHARE


def test_the_share_is_the_same_for_all_noise_below_one() -> None:
    shares = [content_share(noise, num_train=5_000, num_classes=3) for noise in (1.0, 0.1)]
    assert shares == [0.05, 0.05]


def test_evidence_is_inversely_proportional_to_squared_noise() -> None:
    lengths = PartLengths.for_share(0.1)
    more, less = (feature_evidence(2_000, lengths=lengths, noise_std=noise) for noise in (2.0, 4.0))
    assert more == pytest.approx(4 * less)
    assert math.isinf(feature_evidence(2_000, lengths=lengths, noise_std=0.0))
