import math

import pytest

from vesper.errors import InputError
from vesper.method.base import Method, PublicSizes
from vesper.method.baselines.noisy_graph import EdgeRandMethod, LapGraphMethod
from vesper.method.settings import Config, PrivacySettings

SIZES = PublicSizes(num_nodes=500, num_train=300, num_features=8, num_classes=3)
both = pytest.mark.parametrize(
    "method", [EdgeRandMethod(), LapGraphMethod()], ids=["edgerand", "lapgraph"]
)


@both
def test_all_of_epsilon_is_certified_without_delta(method: Method) -> None:
    noise_plan = method.noise_plan(Config(privacy=PrivacySettings(epsilon=3.0)), SIZES)
    assert (noise_plan.plan, noise_plan.certified_epsilon, noise_plan.delta) == (
        "certified",
        3.0,
        0.0,
    )
    assert noise_plan.releases == 1
    assert (
        method.noise_plan(Config(privacy=PrivacySettings(epsilon=math.inf)), SIZES).plan == "none"
    )


@both
def test_other_accounting_is_refused(method: Method) -> None:
    privacy = PrivacySettings(accounting="as-published")
    with pytest.raises(InputError, match=r"accounting: expected 'exact' .* got 'as-published'"):
        method.noise_plan(Config(privacy=privacy), SIZES)


@both
def test_an_epsilon_that_cannot_be_drawn_is_refused(method: Method) -> None:
    with pytest.raises(InputError, match=r"expected between 0\.05 and 100, got 0\.01"):
        method.noise_plan(Config(privacy=PrivacySettings(epsilon=0.01)), SIZES)


@both
def test_a_large_graph_is_refused_before_anything_is_charged(method: Method) -> None:
    large = PublicSizes(num_nodes=10**7, num_train=300, num_features=8, num_classes=3)
    with pytest.raises(InputError, match="pairs of nodes that take at most 2,000,000,000 draws"):
        method.noise_plan(Config(privacy=PrivacySettings(epsilon=20.0)), large)
