"""Claim L-FILTER: laws of the accountant, and adaptive transcripts by exact integration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from vesper.errors import InputError
from vesper.privacy.accounting.budget import Budget, NonPrivate
from vesper.privacy.accounting.gaussian import delta_of, mu_of
from vesper.privacy.accounting.participation import (
    cap_for,
    charge_of,
    epsilon_for,
    mu_for,
    node_rows,
    noise_std_for,
    noise_std_within,
    releases_left,
    split_noise_std,
)

BUDGETS = st.builds(
    Budget, epsilon=st.floats(0.01, 200), delta=st.floats(-12, -3).map(lambda p: 10**p)
)


# The claim: an observer picks the second release after seeing the first.

OUTPUTS = np.linspace(-12.0, 16.0, 28_001)
STEP = OUTPUTS[1] - OUTPUTS[0]


def adaptive_delta(first_mu: float, second_mu: NDArray[np.float64], epsilon: float) -> float:
    """Exact delta of N(first_mu, 1), then N(second_mu[output], 1), against zero means."""
    density = np.exp(-((OUTPUTS - first_mu) ** 2) / 2) / math.sqrt(2 * math.pi)  # (outputs,)
    left = epsilon - (first_mu * OUTPUTS - first_mu**2 / 2)  # privacy loss still to come
    mu = np.maximum(second_mu, 1e-9)
    second = ndtr(-left / mu + mu / 2) - np.exp(left) * ndtr(-left / mu - mu / 2)
    second = np.where(second_mu > 0, second, np.maximum(0.0, 1 - np.exp(np.minimum(left, 0))))
    return float(np.sum(density * second) * STEP)


@given(
    total_mu=st.floats(0.3, 3),
    first_share=st.floats(0.05, 0.95),
    spend=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    epsilon=st.floats(0.1, 4),
)
def test_no_adaptive_choice_under_the_cap_beats_the_claim(
    total_mu: float, first_share: float, spend: list[float], epsilon: float
) -> None:
    first_mu = total_mu * math.sqrt(first_share)
    left_mu = total_mu * math.sqrt(1 - first_share)
    # The second release spends a part of what is left that depends on the first output.
    part = np.array(spend)[np.floor(OUTPUTS * 3).astype(int) % len(spend)]
    attained = adaptive_delta(first_mu, left_mu * part, epsilon)
    assert attained <= delta_of(mu=total_mu, epsilon=epsilon) * (1 + 1e-5)


def test_the_claim_is_attained_and_one_percent_less_is_caught() -> None:
    first_mu, second_mu = 0.6, np.full_like(OUTPUTS, 0.8)
    attained = adaptive_delta(first_mu, second_mu, epsilon=1.5)
    assert attained == pytest.approx(delta_of(mu=1.0, epsilon=1.5), rel=1e-6)
    assert attained > delta_of(mu=0.99, epsilon=1.5)


# Laws.


@given(budget=BUDGETS, releases=st.integers(1, 50), shift=st.floats(0.05, 20))
def test_calibrated_noise_keeps_the_budget_and_less_does_not(
    budget: Budget, releases: int, shift: float
) -> None:
    noise_std = noise_std_for(budget=budget, releases=releases, endpoint_shift=shift)

    def epsilon(noise: float) -> float:
        return epsilon_for(
            noise_std=noise, releases=releases, delta=budget.delta, endpoint_shift=shift
        )

    assert budget.epsilon * (1 - 1e-3) < epsilon(noise_std) <= budget.epsilon * (1 + 2.0**-50)
    assert epsilon(0.99 * noise_std) > budget.epsilon


@given(budget=BUDGETS, releases=st.integers(1, 10**6))
def test_planned_releases_fit_and_one_more_does_not(budget: Budget, releases: int) -> None:
    noise_std = noise_std_for(budget=budget, releases=releases)
    assert releases_left(cap=cap_for(budget=budget), spent=0.0, noise_std=noise_std) == releases


@given(
    epsilon=st.floats(-3, 2).map(lambda p: 10**p),
    delta=st.sampled_from([1e-5, 1e-8, 1e-12]),
    releases=st.integers(1, 10**9),
)
def test_calibration_is_within_a_thousandth_however_small_and_many(
    epsilon: float, delta: float, releases: int
) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    cap = cap_for(budget=budget)
    noise_std = noise_std_for(budget=budget, releases=releases)
    # As an account counts: in whole units, at least 2^61 per cap, every charge rounded up.
    unit = Fraction(2) ** (62 - math.frexp(cap)[1])
    cost = math.ceil(1 / Fraction(noise_std) ** 2 * unit)
    units = math.floor(Fraction(cap) * unit)
    assert 0.999 * units < releases * cost <= units


def test_a_coarse_unit_would_not_be_within_a_thousandth() -> None:
    cap = cap_for(budget=Budget(epsilon=1e-3, delta=1e-8))
    units, releases = math.floor(cap * 2**40), 2600
    cost = 1 + math.floor(cap / releases * 2**40)
    assert units // cost < 0.999 * releases  # as with a unit of 2^-40


@given(noise_stds=st.lists(st.floats(0.3, 30), min_size=1, max_size=8))
def test_charges_one_by_one_equal_one_charge_in_any_order(noise_stds: list[float]) -> None:
    charges = [charge_of(noise_std=noise_std) for noise_std in noise_stds]
    forward = mu_for(spent=math.fsum(charges))
    assert mu_for(spent=math.fsum(charges[::-1])) == forward
    at_once = charge_of(noise_std=1 / math.sqrt(math.fsum(n**-2 for n in noise_stds)))
    assert mu_for(spent=at_once) == pytest.approx(forward, rel=1e-12)


@given(noise_std=st.floats(0.3, 30), releases=st.integers(1, 20))
def test_n_releases_are_one_release_of_less_noise(noise_std: float, releases: int) -> None:
    many = epsilon_for(noise_std=noise_std, releases=releases, delta=1e-8)
    one = epsilon_for(noise_std=noise_std / math.sqrt(releases), releases=1, delta=1e-8)
    assert many == pytest.approx(one, rel=1e-9)


@given(noise_std=st.floats(0.3, 30), more=st.floats(1.001, 5), releases=st.integers(1, 20))
def test_more_noise_or_fewer_releases_never_cost_more(
    noise_std: float, more: float, releases: int
) -> None:
    base = epsilon_for(noise_std=noise_std, releases=releases, delta=1e-8)
    assert epsilon_for(noise_std=noise_std * more, releases=releases, delta=1e-8) <= base
    assert epsilon_for(noise_std=noise_std, releases=releases - 1, delta=1e-8) <= base


def test_nothing_costs_nothing_and_no_noise_costs_everything() -> None:
    assert epsilon_for(noise_std=0.0, releases=0, delta=1e-8) == 0.0
    assert epsilon_for(noise_std=0.0, releases=1, delta=1e-8) == math.inf
    assert epsilon_for(noise_std=1e-200, releases=1, delta=1e-8) == math.inf
    assert mu_for(spent=0.0) == 0.0
    assert releases_left(cap=1.0, spent=0.0, noise_std=0.0) == 0


@given(cap=st.floats(1e-3, 10), share=st.floats(0, 1.2), noise_std=st.floats(0.3, 50))
def test_releases_left_is_the_largest_number_that_fits(
    cap: float, share: float, noise_std: float
) -> None:
    spent = cap * share
    left = releases_left(cap=cap, spent=spent, noise_std=noise_std)
    charge = Fraction(charge_of(noise_std=noise_std))
    assert left >= 0
    assert left == 0 or Fraction(spent) + left * charge <= Fraction(cap)
    assert Fraction(spent) + (left + 1) * charge > Fraction(cap)


# Splits, other sensitivities, other relations.


@given(
    budget=BUDGETS,
    weights=st.lists(st.floats(0.1, 10), min_size=1, max_size=5),
    releases=st.integers(1, 5),
)
def test_a_split_uses_the_whole_budget_and_no_more(
    budget: Budget, weights: list[float], releases: int
) -> None:
    noise_stds = split_noise_std(budget=budget, weights=weights, releases=releases)
    spent = sum(releases / Fraction(noise_std) ** 2 for noise_std in noise_stds)
    cap = cap_for(budget=budget)
    assert cap * (1 - 1e-3) < spent <= cap


def test_a_split_gives_the_heavier_hop_less_noise() -> None:
    budget = Budget(epsilon=1.0, delta=1e-8)
    first, second = split_noise_std(budget=budget, weights=(3, 7))
    assert first / second == pytest.approx(math.sqrt(7 / 3), rel=1e-9)
    even = split_noise_std(budget=budget, weights=(1, 1))
    assert even[0] == even[1] == pytest.approx(noise_std_for(budget=budget, releases=2), rel=1e-9)


def test_a_smaller_sensitivity_needs_proportionally_less_noise() -> None:
    budget = Budget(epsilon=2.0, delta=1e-8)
    plain = noise_std_for(budget=budget, releases=1)
    clamped_gcn = noise_std_for(budget=budget, releases=1, endpoint_shift=0.325 / math.sqrt(2))
    assert clamped_gcn == pytest.approx(plain * 0.325 / math.sqrt(2), rel=1e-9)


def test_the_node_relation_counts_all_rows_of_a_node() -> None:
    budget = Budget(epsilon=2.0, delta=1e-8)
    rows = node_rows(max_degree=20, row_norm=math.sqrt(20))
    assert rows == pytest.approx(40)
    ratio = noise_std_for(budget=budget, releases=3, rows=rows) / noise_std_for(
        budget=budget, releases=3
    )
    assert ratio == pytest.approx(math.sqrt(20), rel=1e-9)  # sqrt(2 D) instead of sqrt(2)
    cap = cap_for(budget=budget, rows=rows)
    assert mu_for(spent=cap, rows=rows) == pytest.approx(mu_of(epsilon=2.0, delta=1e-8), rel=1e-12)


# What must be impossible.


@given(budget=BUDGETS, releases=st.integers(1, 1000))
def test_a_finite_epsilon_never_gets_zero_noise(budget: Budget, releases: int) -> None:
    assert 0 < noise_std_for(budget=budget, releases=releases) < math.inf


@pytest.mark.parametrize("epsilon", [1e6, 1e12, 1e300])
def test_not_even_an_absurd_finite_epsilon_gets_zero_noise(epsilon: float) -> None:
    assert noise_std_for(budget=Budget(epsilon=epsilon, delta=1e-8), releases=1) > 0


def test_zero_noise_requires_non_private() -> None:
    assert noise_std_for(budget=NonPrivate(), releases=1) == 0.0
    with pytest.raises(InputError, match="NonPrivate"):
        noise_std_for(budget=Budget(epsilon=math.inf, delta=1e-8), releases=1)
    with pytest.raises(InputError, match="NonPrivate"):
        cap_for(budget=Budget(epsilon=math.inf, delta=1e-8))


def test_refuses_what_cannot_be_planned() -> None:
    budget = Budget(epsilon=1.0, delta=1e-8)
    with pytest.raises(InputError, match="Expected releases >= 1, got releases=0: give"):
        noise_std_for(budget=budget, releases=0)
    with pytest.raises(InputError, match="plan fewer releases"):
        noise_std_for(budget=budget, releases=2**60)
    with pytest.raises(InputError, match="plan fewer releases"):
        noise_std_within(room=0.0, cap=1.0, releases=1)
    with pytest.raises(InputError, match="endpoint_shift"):
        noise_std_for(budget=budget, releases=1, endpoint_shift=0.0)
    with pytest.raises(InputError, match="weights"):
        split_noise_std(budget=budget, weights=(1.0, 0.0))
    with pytest.raises(InputError, match="noise_std"):
        charge_of(noise_std=-1.0)
