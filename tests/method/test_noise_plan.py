import math

import pytest

from vesper.errors import InputError
from vesper.method.base import PublicSizes
from vesper.method.noise_plan import certified_plan, public_delta, shares
from vesper.method.settings import PrivacySettings
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for

SIZES = PublicSizes(num_nodes=15_374, num_train=9_000, num_features=5, num_classes=3)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 32.0])
@pytest.mark.parametrize("first_share", [None, 0.3, 0.9])
@pytest.mark.parametrize("releases", [1, 2, 3])
def test_shares_use_the_whole_cap_and_not_more(
    epsilon: float, first_share: float | None, releases: int
) -> None:
    privacy = PrivacySettings(epsilon=epsilon, first_share=first_share)
    noise_plan = certified_plan(privacy, SIZES, releases=releases, width=4)
    spent = math.fsum(noise_std**-2 for noise_std in noise_plan.noise_stds)
    cap = cap_for(budget=Budget(epsilon=epsilon, delta=1e-6))
    assert 0.999 * cap < spent <= cap
    assert noise_plan.certified_epsilon == epsilon


def test_shares_are_equal_by_default() -> None:
    assert shares(PrivacySettings(), releases=2) == [0.5, 0.5]


def test_delta_is_a_power_of_ten_of_a_public_number() -> None:
    assert [public_delta(n) for n in (1, 10, 11, 2_449_029)] == [0.1, 0.01, 0.001, 1e-8]


def test_a_certified_method_takes_no_other_accounting() -> None:
    with pytest.raises(InputError, match="expected 'exact'"):
        certified_plan(PrivacySettings(accounting="as-published"), SIZES, releases=1, width=4)


@pytest.mark.parametrize(
    ("epsilon", "advice"), [(0.01, "larger epsilon"), (1e6, "smaller epsilon")]
)
def test_noise_that_cannot_be_drawn_is_refused_before_the_first_hop(
    epsilon: float, advice: str
) -> None:
    privacy = PrivacySettings(epsilon=epsilon, first_share=0.9)
    with pytest.raises(InputError, match=advice):
        certified_plan(privacy, SIZES, releases=2, width=4)
