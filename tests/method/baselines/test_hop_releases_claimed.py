"""Three ways to count the same sums."""

import math

import pytest

from vesper.errors import InputError
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.noise.rounded_gaussian import LARGEST_SCALE
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.baselines.hop_releases import LARGEST_CLAIMED_NOISE, released_sums_plan
from vesper.method.settings import Config, PrivacySettings

SIZES = PublicSizes(num_nodes=20_000, num_train=10_000, num_features=8, num_classes=3)


def noise_plan(accounting: str, *, epsilon: float = 4.0, releases: int = 2) -> NoisePlan:
    settings = {"accounting": accounting, "epsilon": epsilon}
    privacy = PrivacySettings.model_validate(settings)
    return released_sums_plan(Config(privacy=privacy), SIZES, releases=releases)


def test_only_exact_counting_certifies() -> None:
    exact = noise_plan("exact")
    assert (exact.plan, exact.certified_epsilon, exact.claimed_epsilon) == ("certified", 4.0, None)
    for accounting in ("as-published", "theorem-1"):
        other = noise_plan(accounting)
        assert (other.plan, other.certified_epsilon, other.claimed_epsilon) == ("paper", None, 4.0)
        assert other.delta == exact.delta


def test_published_noise_is_too_small_and_the_papers_is_far_too_large() -> None:
    exact, published, corrected = map(noise_plan, ("exact", "as-published", "theorem-1"))
    assert published.noise_stds[0] < 0.76 * exact.noise_stds[0]
    assert corrected.noise_stds[0] > 5 * exact.noise_stds[0]
    assert published.worth_epsilon is not None
    assert published.worth_epsilon > 5.4
    assert corrected.worth_epsilon is not None
    assert corrected.worth_epsilon < 1
    assert exact.worth_epsilon is None


@pytest.mark.parametrize("accounting", ["exact", "as-published", "theorem-1"])
def test_without_privacy_there_is_no_noise(accounting: str) -> None:
    assert noise_plan(accounting, epsilon=math.inf) == NoisePlan(
        plan="none",
        certified_epsilon=None,
        claimed_epsilon=None,
        delta=None,
        noise_stds=(0.0, 0.0),
    )


@pytest.mark.parametrize("releases", [1, 2, 3])
def test_one_noise_std_per_release(releases: int) -> None:
    assert len(noise_plan("as-published", releases=releases).noise_stds) == releases


def test_any_noise_that_can_be_drawn_may_be_claimed() -> None:
    assert LARGEST_CLAIMED_NOISE == LARGEST_SCALE / STEPS


def test_noise_that_cannot_be_drawn_is_refused_in_terms_of_settings() -> None:
    with pytest.raises(InputError, match=r"epsilon: 1e-05 .* at most 16384; use a larger epsilon"):
        noise_plan("theorem-1", epsilon=1e-5)
