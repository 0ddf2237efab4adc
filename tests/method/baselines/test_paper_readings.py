"""Two readings of the paper add less noise than its theorem needs, and claim no more than that."""

import math

import pytest

from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.registry import find_method
from vesper.session.config import load_config

SIZES = PublicSizes(num_nodes=232_965, num_train=153_431, num_features=602, num_classes=41)


def plan(**settings: str) -> NoisePlan:
    config = load_config(None, {"method": "paper-gin", "epsilon": 4.0, **settings}, preset="reddit")
    return find_method("paper-gin").noise_plan(config, SIZES)


def test_total_noise_is_smaller_by_the_root_of_the_width_and_claims_what_that_is_worth() -> None:
    faithful, read = plan(), plan(noise_reading="per-vector")
    ratio = faithful.noise_stds[0] / read.noise_stds[0]
    assert ratio == pytest.approx(math.sqrt(512))
    assert faithful.claimed_epsilon == pytest.approx(4.0, rel=1e-4)
    assert read.claimed_epsilon is not None
    assert read.claimed_epsilon > 500
    assert (read.plan, read.certified_epsilon) == ("paper", None)


def test_weights_of_any_norm_claim_nothing() -> None:
    faithful, read = plan(), plan(spectral_norm="none")
    assert read.noise_stds == faithful.noise_stds
    assert (read.plan, read.claimed_epsilon, read.certified_epsilon) == ("paper", math.inf, None)
