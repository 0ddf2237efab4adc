import dataclasses
import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.accounting.budget import Budget, NonPrivate
from vesper.privacy.accounting.renyi import cgf_bound, printed_cgf_bound
from vesper.privacy.accounting.theorem_1 import (
    PaperTraining,
    best_epsilon,
    claimed_epsilon,
    max_roots_touched,
    noise_std_for,
    orders_suffice,
    participation_rate,
)

dp_accounting: Any = importlib.import_module("dp_accounting")
rdp: Any = importlib.import_module("dp_accounting.rdp")

PRODUCTS = PaperTraining(
    num_train_nodes=196_615, batch_size=256, max_degree=20, num_layers=2, num_epochs=5
)
PRODUCTS_DELTA = 1 / 123_718_280


@pytest.mark.parametrize(
    ("nodes", "batch", "degree", "layers"),
    [(1000, 10, 3, 1), (1000, 32, 3, 2), (196_615, 256, 20, 2), (500, 200, 4, 4), (50, 30, 20, 2)],
)
def test_participation_rate_is_the_printed_quotient_of_binomials(
    nodes: int, batch: int, degree: int, layers: int
) -> None:
    touched = 2 * (degree**layers - 1) // (degree - 1)
    assert max_roots_touched(max_degree=degree, num_layers=layers) == touched
    exact = 1 - math.comb(max(0, nodes - touched), batch) / math.comb(nodes, batch)
    rate = participation_rate(
        num_train_nodes=nodes, batch_size=batch, max_degree=degree, num_layers=layers
    )
    assert rate == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("noise_std", [3.64, 19.8, 72.5])
def test_agrees_with_dp_accounting(noise_std: float) -> None:
    orders = [1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 9.5, 12, 16, 17, 23, 28.5, 31, 32]
    event = dp_accounting.SampledWithoutReplacementDpEvent(
        source_dataset_size=1.0,
        sample_size=PRODUCTS.participation_rate,
        event=dp_accounting.GaussianDpEvent(noise_std / PRODUCTS.sensitivity),
    )
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    oracle = rdp.RdpAccountant(orders, relation)
    oracle.compose(event, PRODUCTS.num_steps)
    cgf = PRODUCTS.num_steps * cgf_bound(
        sampling_rate=PRODUCTS.participation_rate,
        noise_multiplier=noise_std / PRODUCTS.sensitivity,
        max_order=32,
    )
    ours = np.interp(orders, np.arange(33), cgf) / (np.array(orders) - 1)
    np.testing.assert_allclose(ours, oracle._rdp, rtol=1e-6)
    # The best whole order is in both lists, so the epsilons can differ by the finer grid only.
    claimed = claimed_epsilon(training=PRODUCTS, noise_std=noise_std, delta=PRODUCTS_DELTA)
    theirs = oracle.get_epsilon(PRODUCTS_DELTA)
    assert theirs * (1 - 1e-3) <= claimed <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("noise_std", [0.9, 1.4, 3.6, 20.0, 72.5, 700.0])
def test_a_finer_grid_of_orders_changes_little(noise_std: float) -> None:
    cgf = PRODUCTS.num_steps * cgf_bound(
        sampling_rate=PRODUCTS.participation_rate,
        noise_multiplier=noise_std / PRODUCTS.sensitivity,
        max_order=512,
    )
    fine, _ = best_epsilon(cgf=cgf, delta=PRODUCTS_DELTA, relative_step=0.0005)
    claimed = claimed_epsilon(training=PRODUCTS, noise_std=noise_std, delta=PRODUCTS_DELTA)
    assert fine * (1 - 1e-9) <= claimed <= fine * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 32.0, 200.0])
@pytest.mark.parametrize("layers", [1, 2])
def test_calibrated_noise_keeps_the_budget_and_less_does_not(epsilon: float, layers: int) -> None:
    training = dataclasses.replace(PRODUCTS, num_layers=layers)
    noise_std = noise_std_for(
        training=training, budget=Budget(epsilon=epsilon, delta=PRODUCTS_DELTA)
    )
    claimed = claimed_epsilon(training=training, noise_std=noise_std, delta=PRODUCTS_DELTA)
    assert epsilon * (1 - 1e-3) < claimed <= epsilon
    less = claimed_epsilon(training=training, noise_std=0.99 * noise_std, delta=PRODUCTS_DELTA)
    assert less > epsilon


def test_the_printed_formula_cannot_certify_below_seven_at_any_noise() -> None:
    floors = []
    for noise_multiplier in (1e2, 1e4, 1e6):
        printed = printed_cgf_bound(
            sampling_rate=PRODUCTS.participation_rate,
            noise_multiplier=noise_multiplier,
            max_order=64,
        )
        cgf = PRODUCTS.num_steps * printed
        floors.append(best_epsilon(cgf=cgf, delta=PRODUCTS_DELTA)[0])
    assert floors == pytest.approx([7.017, 7.010, 7.010], abs=5e-4)
    # The bound that is meant reaches 1 with a noise multiplier of 36.
    assert claimed_epsilon(training=PRODUCTS, noise_std=72.6, delta=PRODUCTS_DELTA) < 1.0


@given(noise_std=st.floats(1, 100), more=st.floats(1.01, 2), epochs=st.integers(1, 20))
def test_more_noise_never_costs_more_and_more_epochs_never_cost_less(
    noise_std: float, more: float, epochs: int
) -> None:
    def claimed(noise: float, num_epochs: int) -> float:
        training = dataclasses.replace(PRODUCTS, num_epochs=num_epochs)
        return claimed_epsilon(training=training, noise_std=noise, delta=PRODUCTS_DELTA)

    base = claimed(noise_std, epochs)
    assert claimed(noise_std * more, epochs) <= base * (1 + 1e-9)
    assert claimed(noise_std, epochs + 1) >= base * (1 - 1e-9)


def test_no_step_costs_nothing_and_no_noise_costs_everything() -> None:
    idle = dataclasses.replace(PRODUCTS, num_epochs=0)
    assert claimed_epsilon(training=idle, noise_std=1.0, delta=1e-6) == 0.0
    assert claimed_epsilon(training=PRODUCTS, noise_std=0.0, delta=1e-6) == math.inf


@pytest.mark.parametrize("epsilon", [1e-4, 1e6, 1e300])
def test_a_finite_epsilon_never_gets_zero_noise(epsilon: float) -> None:
    noise_std = noise_std_for(training=PRODUCTS, budget=Budget(epsilon=epsilon, delta=1e-8))
    assert 0 < noise_std < math.inf
    assert noise_std_for(training=PRODUCTS, budget=NonPrivate()) == 0.0


def test_refuses_what_cannot_be_planned() -> None:
    with pytest.raises(InputError, match="NonPrivate"):
        noise_std_for(training=PRODUCTS, budget=Budget(epsilon=math.inf, delta=1e-6))
    with pytest.raises(InputError, match="num_epochs"):
        noise_std_for(
            training=dataclasses.replace(PRODUCTS, num_epochs=0),
            budget=Budget(epsilon=1.0, delta=1e-6),
        )
    with pytest.raises(InputError, match="num_train_nodes"):
        dataclasses.replace(PRODUCTS, num_train_nodes=255)
    with pytest.raises(InputError, match="edge_sensitivity"):
        dataclasses.replace(PRODUCTS, edge_sensitivity=0.0)


@pytest.mark.parametrize(("noise_std", "suffice"), [(0.0, False), (60.0, True), (1e4, False)])
def test_whether_orders_suffice(noise_std: float, suffice: bool) -> None:
    assert orders_suffice(training=PRODUCTS, noise_std=noise_std, delta=1e-6) is suffice


def test_a_claim_of_nothing_is_no_claim() -> None:
    # so much noise that one of the orders gives epsilon 0
    assert claimed_epsilon(training=PRODUCTS, noise_std=1e9, delta=1e-6) == 0
    assert not orders_suffice(training=PRODUCTS, noise_std=1e9, delta=1e-6)
