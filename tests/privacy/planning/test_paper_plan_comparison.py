"""Noise for the settings of the paper, and the epsilon that this noise really gives."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import epsilon_for, noise_std_for
from vesper.privacy.accounting.theorem_1 import claimed_epsilon
from vesper.privacy.planning.paper_plan import (
    PAPER_DATASETS,
    PAPER_EPSILONS,
    ComparisonRow,
    reproduce_paper,
    true_epsilon_lower_bound,
)

ROWS = reproduce_paper()


def column(dataset: str, layers: int, field: str) -> list[float]:
    chosen = [row for row in ROWS if row.dataset == dataset and row.layers == layers]
    assert [row.claimed_epsilon for row in chosen] == list(PAPER_EPSILONS)
    return [getattr(row, field) for row in chosen]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("products", [72.5, 37.6, 19.8, 10.6, 5.99, 3.64]),
        ("reddit", [81.4, 42.2, 22.2, 11.9, 6.69, 4.03]),
        ("finance", [10.3, 5.55, 3.18, 1.86, 1.34, 1.07]),
    ],
)
def test_noise_that_the_paper_claims_for_two_layers(dataset: str, expected: list[float]) -> None:
    assert column(dataset, 2, "paper_noise_std") == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("products", [10.3, 5.34, 2.81, 1.51, 0.83, 0.475]),
        ("reddit", [10.2, 5.33, 2.80, 1.50, 0.83, 0.475]),
        ("finance", [8.8, 4.63, 2.47, 1.345, 0.755, 0.441]),
    ],
)
def test_certified_noise_for_two_hops(dataset: str, expected: list[float]) -> None:
    assert column(dataset, 2, "certified_noise_std") == pytest.approx(expected, rel=5e-3)


def test_certified_noise_for_two_hops_refreshed_in_five_epochs() -> None:
    delta = PAPER_DATASETS[0].delta
    planned = [
        noise_std_for(budget=Budget(epsilon=epsilon, delta=delta), releases=10)
        for epsilon in PAPER_EPSILONS
    ]
    assert planned == pytest.approx([23.0, 11.9, 6.28, 3.37, 1.86, 1.06], rel=5e-3)


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("products", [6.9, 12.7, 19.3, 26.3, 32.9]),
        ("reddit", [6.1, 11.2, 18.5, 25.2, 31.8]),
        ("finance", [7.7, 10.6, 14.1, 18.6, 23.2]),
    ],
)
def test_what_the_noise_for_one_layer_really_guarantees(
    dataset: str, expected: list[float]
) -> None:
    assert column(dataset, 1, "true_epsilon_lower_bound")[:5] == pytest.approx(expected, abs=0.05)


def test_one_layer_is_refuted_up_to_16_and_two_layers_are_not() -> None:
    assert column("products", 2, "true_epsilon_lower_bound")[0] == pytest.approx(0.21, abs=0.005)
    assert column("finance", 2, "true_epsilon_lower_bound")[0] == pytest.approx(0.84, abs=0.005)
    for row in ROWS:
        if row.claimed_epsilon <= 16:
            assert (row.true_epsilon_lower_bound > row.claimed_epsilon) == (row.layers == 1)


def test_every_row_meets_its_claimed_epsilon() -> None:
    datasets = {dataset.name: dataset for dataset in PAPER_DATASETS}
    assert len(ROWS) == len(datasets) * 2 * len(PAPER_EPSILONS)
    for row in ROWS:
        dataset = datasets[row.dataset]
        training = dataset.training(num_layers=row.layers)
        claimed = claimed_epsilon(
            training=training, noise_std=row.paper_noise_std, delta=dataset.delta
        )
        certified = epsilon_for(
            noise_std=row.certified_noise_std, releases=row.layers, delta=dataset.delta
        )
        for epsilon in (claimed, certified):
            assert row.claimed_epsilon * (1 - 1e-3) < epsilon <= row.claimed_epsilon * (1 + 1e-15)


def test_the_lower_bound_is_attained_by_the_best_attack() -> None:
    # Two unit shifts in each of five epochs: the likelihood ratio test on their sum has these
    # error rates, and no (epsilon, delta) below the bound allows them.
    noise_std, epochs, delta = 2.7, 5, 1e-6
    bound = true_epsilon_lower_bound(noise_std=noise_std, num_epochs=epochs, delta=delta)
    mu = math.sqrt(2 * epochs) / noise_std
    thresholds = np.linspace(-5, 15, 20_001)
    detected, false_alarm = ndtr(mu - thresholds), ndtr(-thresholds)

    def allowed(epsilon: float) -> bool:
        return bool(np.all(detected <= math.exp(epsilon) * false_alarm + delta * (1 + 1e-6)))

    assert allowed(bound)
    assert not allowed(bound * 0.99)


def test_without_epochs_nothing_leaks_and_without_noise_everything() -> None:
    assert true_epsilon_lower_bound(noise_std=1.0, num_epochs=0, delta=1e-6) == 0.0
    assert true_epsilon_lower_bound(noise_std=0.0, num_epochs=1, delta=1e-6) == math.inf


def test_progress_is_reported() -> None:
    updates: list[tuple[str, int, int]] = []
    rows: list[ComparisonRow] = reproduce_paper(progress=lambda *update: updates.append(update))
    assert rows == ROWS
    assert updates[0] == ("calibrating", 0, len(rows))
    assert updates[-1] == ("calibrating", len(rows), len(rows))
