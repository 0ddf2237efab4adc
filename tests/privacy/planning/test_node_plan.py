"""Noise for whole nodes: both accountants agree, and the paper's theorem claims too much."""

import math

import pytest

from vesper.errors import InputError
from vesper.method.base import PublicSizes
from vesper.method.registry import METHODS
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.planning.node_plan import claimed_sensitivity, plan_for_nodes, renyi_noise_std
from vesper.session.config import load_config

BUDGET = Budget(epsilon=4.0, delta=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("max_degree", [1, 5, 20, 200])
def test_the_renyi_accountant_certifies_with_a_little_more_noise(
    epsilon: float, max_degree: int
) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    plan = plan_for_nodes(budget=budget, max_degree=max_degree, hops=2)
    assert 1.0 < plan.renyi_noise_std / plan.noise_std < 1.12
    mu = math.sqrt(2 * 2 * max_degree) / plan.noise_std
    assert epsilon * (1 - 1e-6) <= epsilon_of(mu=mu, delta=1e-6) <= epsilon


@pytest.mark.parametrize("max_degree", [3, 5, 20, 200])
def test_the_printed_theorem_claims_too_small_an_epsilon(max_degree: int) -> None:
    plan = plan_for_nodes(budget=BUDGET, max_degree=max_degree, hops=1)
    true = math.sqrt(max_degree + max_degree**2)
    assert claimed_sensitivity(max_degree=max_degree) < true
    assert plan.true_epsilon == epsilon_of(mu=true / plan.claimed_noise_std, delta=1e-6)
    assert plan.true_epsilon > {3: 0.9, 5: 1.2, 20: 3.0, 200: 9.0}[max_degree] * plan.epsilon


def test_a_run_draws_this_noise_plus_the_share_of_rounding() -> None:
    config = load_config(
        None,
        {"epsilon": 4.0, "delta": 1e-6, "hops": 2, "privacy_unit": "node", "label_messages": False},
    )
    sizes = PublicSizes(num_nodes=99, num_train=5, num_features=3, num_classes=3)
    noise_std = METHODS["certified"].noise_plan(config, sizes).noise_stds[0]
    planned = plan_for_nodes(budget=BUDGET, max_degree=20, hops=2).noise_std
    assert planned <= noise_std <= 1.05 * planned


def test_renyi_noise_is_the_smallest() -> None:
    noise = renyi_noise_std(budget=BUDGET, sensitivity=1.0)
    twice = renyi_noise_std(budget=BUDGET, sensitivity=2.0)
    assert twice == pytest.approx(2 * noise, rel=1e-6)


@pytest.mark.parametrize("wrong", [{"max_degree": 0}, {"hops": 0}])
def test_invalid_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        plan_for_nodes(budget=BUDGET, **({"max_degree": 5, "hops": 1} | wrong))
