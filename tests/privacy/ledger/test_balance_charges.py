"""What a balance charges for counts, releases and all edges of a node, in whole units."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import delta_of, epsilon_of, mu_of
from vesper.privacy.accounting.participation import noise_std_for
from vesper.privacy.events import ClippedRelease, Event, GaussianRelease, PureRelease
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.budget_filter import OverdrawnError
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.relation import NodeRelation

BUDGET = Budget(epsilon=1.0, delta=1e-6)
EVERYONE = encode(None, 3)
Charge = Callable[..., Balance]


def balance(budget: Budget | None = BUDGET) -> Balance:
    return Balance("g", num_nodes=3, budget=budget)


def count(epsilon: float) -> PureRelease:
    return PureRelease(epsilon=epsilon, what="counts")


def test_a_count_of_epsilon_one_tenth_costs_one_tenth(charged: Charge) -> None:
    account = charged(balance(), count(0.1))
    assert account.spent_epsilon() == pytest.approx(0.1, abs=1e-15)
    assert account.left_epsilon() == pytest.approx(0.9, rel=1e-6)
    noise_std = account.noise_std_for(releases=2)
    alone = noise_std_for(budget=Budget(epsilon=0.9, delta=1e-6), releases=2)
    assert noise_std == pytest.approx(alone, rel=1e-9)
    charged(account, GaussianRelease(noise_std=noise_std), times=2)
    assert 0.999 <= account.spent_epsilon() <= 1
    assert account.left_epsilon() == pytest.approx(0, abs=1e-6)


def test_counts_alone_use_the_whole_budget_and_no_more(charged: Charge) -> None:
    account = charged(balance(), count(0.25), times=4)
    assert account.spent_epsilon() == 1
    assert account.fits(count(0.25)) == 0
    with pytest.raises(BudgetError, match=r"(?s)\(epsilon\).*Remaining:  0\n"):
        charged(account, count(1e-9))
    with pytest.raises(BudgetError, match="epsilon at delta 1e-06, each on its own"):
        charged(account, GaussianRelease(noise_std=1024.0))


def test_a_count_after_a_release_is_charged_its_mu(charged: Charge) -> None:
    release = GaussianRelease(noise_std=1000.0)
    account = charged(balance(), release)
    before = account.spent_mu_squared
    charged(account, count(0.05))
    assert account.pure == 0
    assert account.spent_mu_squared - before == pytest.approx(count(0.05).cost, rel=1e-9)
    assert account.fits(count(0.9)) == 0


def test_left_epsilon_is_what_one_more_release_can_have(charged: Charge) -> None:
    release = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=2))
    account = charged(balance(), release)
    left = account.left_epsilon()
    assert left is not None
    assert left > 1.2 * (1 - account.spent_epsilon())  # a plain difference is far too small
    largest = noise_std_for(budget=Budget(epsilon=left * 0.9999, delta=1e-6), releases=1)
    charged(account, GaussianRelease(noise_std=largest))
    assert account.left_epsilon() == pytest.approx(0, abs=1e-2)
    assert account.spent_epsilon() <= 1


@given(
    epsilon=st.floats(1e-3, 50),
    releases=st.integers(1, 40),
    delta=st.sampled_from([1e-5, 1e-9, 1e-12]),
)
def test_planned_releases_fit_exactly_at_any_scale(
    charged: Charge, epsilon: float, releases: int, delta: float
) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    account = balance(budget)
    noise_std = noise_std_for(budget=budget, releases=releases)
    if not 1 / 256 <= noise_std <= 1024:
        return
    event = GaussianRelease(noise_std=noise_std)
    assert account.fits(event) == releases
    charged(account, event, times=releases)
    assert account.fits(event) == 0
    assert 0.999 * epsilon <= account.spent_epsilon() <= epsilon


def test_a_unit_is_a_tiny_part_of_the_cap_however_small_the_budget() -> None:
    for epsilon in (1e-6, 1.0, 1e6):
        account = balance(Budget(epsilon=epsilon, delta=1e-9))
        assert 2**61 <= account._cap.units <= 2**62
        assert (
            account._cap.units / account._cap.unit
            <= Fraction(mu_of(epsilon=epsilon, delta=1e-9)) ** 2 / 2
        )


@given(noise_std=st.floats(20, 1000), shift=st.floats(1e-12, 1))
def test_charges_are_rounded_up_to_whole_units(
    charged: Charge, noise_std: float, shift: float
) -> None:
    event = GaussianRelease(noise_std=noise_std, endpoint_shift=shift)
    account = charged(balance(), event)
    exact = Fraction(event.cost) * account._cap.unit
    assert exact <= int(account.spent[0]) < exact + 1
    charged(account, GaussianRelease(noise_std=noise_std, endpoint_shift=1e-200))
    assert int(account.spent[0]) > exact  # even a cost far below one unit


def test_without_a_budget_charges_count_and_no_remainder_is_defined(charged: Charge) -> None:
    account = charged(charged(balance(None), count(0.5)), GaussianRelease(noise_std=10.0))
    alone = epsilon_of(mu=math.sqrt(2) / 10, delta=1e-6)
    assert account.spent_epsilon() == pytest.approx(0.5 + alone, rel=1e-6)
    assert account.left_epsilon() is None
    with pytest.raises(InputError, match="one without"):
        account.noise_std_for(releases=1)


def test_a_count_is_charged_to_everyone() -> None:
    with pytest.raises(InputError, match="every node"):
        balance().refuse_if_over_budget(count(0.1), encode(np.array([1]), 3))


def test_entries_that_the_filter_cannot_have_admitted_are_not_booked() -> None:
    facts = dict(count(2.0).facts)
    with pytest.raises(OverdrawnError):
        balance().book(Entry(7, 0.0, "g", "r", facts, 1.0, EVERYONE))
    facts["epsilon"] = -1.0
    with pytest.raises(OverdrawnError):
        balance().book(Entry(7, 0.0, "g", "r", facts, 1.0, EVERYONE))
    with pytest.raises(OverdrawnError):
        balance().book(Entry(7, 0.0, "g", "r", {"kind": "x"}, 1.0, EVERYONE))


# The node relation.

NODE = NodeRelation(max_degree=16, row_norm=4.0)


def test_a_node_pays_for_all_rows_it_moves(charged: Charge) -> None:
    account = Balance("g", num_nodes=3, budget=BUDGET, relation=NODE)
    noise_std = account.noise_std_for(releases=2)
    edge = noise_std_for(budget=BUDGET, releases=2)
    assert noise_std == pytest.approx(edge * math.sqrt((16 + 4.0**2) / 2), rel=1e-9)
    charged(account, ClippedRelease(noise_std=noise_std, row_norm=4.0), times=2)
    # All 16 neighbours and the node itself received both: a Gaussian mechanism of this mu.
    mu = math.sqrt(2 * (16 * 1 + 4.0**2)) / noise_std
    assert 0.999e-6 <= delta_of(mu=mu, epsilon=account.spent_epsilon()) <= 1.001e-6
    assert 0.999 <= account.spent_epsilon() <= 1


@pytest.mark.parametrize(
    "event",
    [
        GaussianRelease(noise_std=100.0),  # its own row may move by 16, not by 4
        ClippedRelease(noise_std=100.0, row_norm=4.1),
        count(0.1),  # proved for one edge
    ],
)
def test_events_proved_for_one_edge_only_are_refused(charged: Charge, event: Event) -> None:
    account = Balance("g", num_nodes=3, budget=BUDGET, relation=NODE)
    with pytest.raises(InputError, match="holds for one node of at most"):
        charged(account, event)
    charged(balance(), ClippedRelease(noise_std=100.0, row_norm=4.1))  # fine for one edge
