"""The accountant published for GAP and ProGAP, and the epsilon that its noise really gives."""

import importlib
import math
from typing import Any

import pytest

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import noise_std_for
from vesper.privacy.accounting.published_noise import (
    published_epsilon,
    published_noise_std,
    true_epsilon_of,
)

dp_accounting: Any = importlib.import_module("dp_accounting")
rdp: Any = importlib.import_module("dp_accounting.rdp")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("releases", [1, 2, 3])
def test_the_noise_is_what_the_authors_would_use(epsilon: float, releases: int) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    noise_std = published_noise_std(budget=budget, releases=releases)
    assert published_epsilon(noise_std=noise_std, releases=releases, delta=1e-6) <= epsilon
    assert published_epsilon(noise_std=0.99 * noise_std, releases=releases, delta=1e-6) > epsilon
    oracle = rdp.RdpAccountant([1 + k / 10 for k in range(1, 4000)])
    oracle.compose(dp_accounting.GaussianDpEvent(noise_std), releases)
    assert oracle.get_epsilon(1e-6) == pytest.approx(epsilon, rel=2e-3)


def test_published_epsilon_4_is_really_more_than_5() -> None:
    true_epsilons = []
    for delta in (1e-4, 1e-5, 1e-6, 1e-7):
        noise_std = published_noise_std(budget=Budget(epsilon=4.0, delta=delta), releases=2)
        true_epsilons.append(true_epsilon_of(noise_stds=[noise_std] * 2, delta=delta))
    assert all(5.4 < epsilon < 5.9 for epsilon in true_epsilons)


def test_exact_noise_gives_its_epsilon() -> None:
    budget = Budget(epsilon=2.0, delta=1e-6)
    noise_std = noise_std_for(budget=budget, releases=3)
    assert true_epsilon_of(noise_stds=[noise_std] * 3, delta=1e-6) == pytest.approx(2.0, rel=1e-9)
    assert math.isinf(true_epsilon_of(noise_stds=[1.0, 0.0], delta=1e-6))
