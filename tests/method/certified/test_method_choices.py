"""Default hops and degree share, which settings override."""

import math

import pytest

from vesper.method.base import PublicSizes
from vesper.method.certified.method import degree_share_of, hops_for
from vesper.method.settings import Config, PrivacySettings
from vesper.session.config import load_config


def sizes(num_classes: int) -> PublicSizes:
    return PublicSizes(num_nodes=9, num_train=5, num_features=3, num_classes=num_classes)


@pytest.mark.parametrize(
    ("epsilon", "num_classes", "hops"),
    [(1.0, 2, 1), (8.0, 2, 2), (math.inf, 2, 2), (0.5, 3, 2), (4.0, 47, 2)],
)
def test_hops_follow_from_epsilon_and_classes(epsilon: float, num_classes: int, hops: int) -> None:
    assert hops_for(PrivacySettings(epsilon=epsilon), sizes(num_classes)) == hops


def test_settings_override_defaults() -> None:
    assert hops_for(PrivacySettings(hops=3), sizes(2)) == 3
    assert degree_share_of(load_config(None, {"degree_share": 0.0}), sizes(2)) == 0.0
    assert degree_share_of(Config(), sizes(2)) > degree_share_of(Config(), sizes(3))


def test_a_maximum_has_no_degree_share_by_default() -> None:
    assert degree_share_of(load_config(None, {"aggregator": "max"}), sizes(2)) == 0.0
    overrides = {"aggregator": "max", "degree_share": 0.5}
    assert degree_share_of(load_config(None, overrides), sizes(2)) == 0.5
