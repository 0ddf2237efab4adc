"""Claim L-FILTER with counts before releases: exact integration over adaptive observers.

An adaptive observer chooses the next release after seeing each result.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import epsilon_of, mu_of
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.balance import Balance

Floats = NDArray[np.float64]
Charge = Callable[..., Balance]


def after_a_count(charged: Charge, budget: Budget, *, pure: float) -> float:
    """The mu that all releases together may have after a count of epsilon `pure`."""
    balance = Balance("g", num_nodes=3, budget=budget)
    charged(balance, PureRelease(epsilon=pure, what="counts"))
    assert balance.left_mu_squared is not None
    return math.sqrt(2 * balance.left_mu_squared)


def gaussian_delta(mu: Floats, epsilon: Floats) -> Floats:
    """Exact hockey-stick of N(mu, 1) against N(0, 1), for any sign of epsilon."""
    safe = np.maximum(mu, 1e-12)
    value = ndtr(-epsilon / safe + safe / 2) - np.exp(epsilon) * ndtr(-epsilon / safe - safe / 2)
    return np.where(mu > 0, value, np.maximum(0.0, 1 - np.exp(epsilon)))


def coin_delta(pure: float, epsilon: Floats) -> Floats:
    """Exact hockey-stick of randomised response, the worst pure release."""
    keep = 1 / (1 + math.exp(-pure))
    high = keep * np.maximum(0.0, 1 - np.exp(epsilon - pure))
    return np.asarray(high + (1 - keep) * np.maximum(0.0, 1 - np.exp(epsilon + pure)))


@given(
    pure=st.floats(0.01, 0.95),
    after_yes=st.floats(0, 1),
    after_no=st.floats(0, 1),
    epsilon=st.floats(0.2, 6),
)
def test_counts_before_releases_keep_the_budget(
    charged: Charge, pure: float, after_yes: float, after_no: float, epsilon: float
) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-3)
    mu = after_a_count(charged, budget, pure=pure * epsilon)
    keep = 1 / (1 + math.exp(-pure * epsilon))
    losses = np.array([pure, -pure]) * epsilon
    reached = gaussian_delta(mu * np.array([after_yes, after_no]), epsilon - losses)
    assert float(np.array([keep, 1 - keep]) @ reached) <= budget.delta * (1 + 1e-9)


def test_two_percent_more_after_a_count_is_caught(charged: Charge) -> None:
    allowed = after_a_count(charged, Budget(epsilon=6.0, delta=1e-3), pure=5.0)
    mu = np.array([1.02 * allowed])
    keep = 1 / (1 + math.exp(-5.0))
    assert keep * float(gaussian_delta(mu, np.array([1.0]))[0]) > 1e-3


OUTPUTS = np.linspace(-12.0, 14.0, 26_001)


def count_or_release(epsilon: float, delta: float, *, first: float, plain: bool) -> float:
    """Delta of a release, then either a count or the rest in one release, whichever is worse.

    `plain` subtracts the epsilon spent to get that of the count, a rule that is not used;
    otherwise the count is as large as its mu^2 allows.
    """
    whole_mu = mu_of(epsilon=epsilon, delta=delta)
    first_mu = first * whole_mu
    rest_mu = math.sqrt(1 - first**2) * whole_mu
    if plain:
        pure = epsilon - epsilon_of(mu=first_mu, delta=delta)
    else:
        pure = math.log(float(ndtr(rest_mu / 2) / ndtr(-rest_mu / 2)))
    density = np.exp(-((OUTPUTS - first_mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    left = epsilon - (first_mu * OUTPUTS - first_mu**2 / 2)  # privacy loss still to come
    reached = np.maximum(coin_delta(pure, left), gaussian_delta(np.full_like(left, rest_mu), left))
    return float(np.sum(density * reached) * (OUTPUTS[1] - OUTPUTS[0]))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_after_a_release_the_epsilon_of_a_count_is_not_a_difference(epsilon: float) -> None:
    worst = max(count_or_release(epsilon, 1e-3, first=f, plain=True) for f in (0.3, 0.5, 0.7))
    assert worst > 1.02e-3  # the tempting rule exceeds the budget,
    for first in (0.1, 0.3, 0.5, 0.7, 0.9):
        reached = count_or_release(epsilon, 1e-3, first=first, plain=False)
        assert reached <= 1e-3 * (1 + 1e-4)  # the rule in use does not
