"""Columns are selected where few of many are informative, and otherwise all are used."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.method.certified.evidence import column_statistics, select_columns

Exact = NDArray[np.float64]
TRAIN = 2000


def class_residuals(rng: np.random.Generator, num_classes: int) -> Exact:
    labels = np.eye(num_classes)[rng.integers(0, num_classes, TRAIN)]
    return np.asarray(labels - labels.mean(axis=0))


def received_sums(
    rng: np.random.Generator, residuals: Exact, *, width: int, effects: Exact
) -> Exact:
    """Noise of size 1 plus, in column j, effects[j] times the residual of the first class."""
    return np.asarray(rng.normal(size=(TRAIN, width)) + residuals[:, :1] * effects)


@pytest.mark.parametrize("num_classes", [2, 5])
def test_one_informative_column_is_found_among_forty(num_classes: int) -> None:
    rng = np.random.default_rng(0)
    residuals = class_residuals(rng, num_classes)
    effects = np.zeros(40)
    effects[7] = 0.6
    found = select_columns(
        residuals, received_sums(rng, residuals, width=40, effects=effects), noise_std=1.0
    )
    assert np.flatnonzero(found.columns).tolist() == [7]
    assert found.penalty > 0
    assert found.explained.z_score > 2.5
    assert found.coefficients.shape == (40, num_classes)
    assert np.flatnonzero(found.coefficients[:, 0]).tolist() == [7]
    assert found.coefficients[7, 0] > 0


def test_all_columns_are_selected_where_each_informs_a_little() -> None:
    rng = np.random.default_rng(1)
    residuals = class_residuals(rng, 2)
    found = select_columns(
        residuals, received_sums(rng, residuals, width=40, effects=np.full(40, 0.08)), noise_std=1.0
    )
    assert found.columns.all()
    assert found.penalty == 0
    assert found.explained.z_score > 2.5


@pytest.mark.parametrize("seed", range(4))
def test_stronger_columns_are_not_selected_alone_where_all_inform(seed: int) -> None:
    rng = np.random.default_rng(seed)
    residuals = class_residuals(rng, 2)
    effects = np.r_[np.full(4, 0.4), np.full(12, 0.1)]
    assert select_columns(
        residuals, received_sums(rng, residuals, width=16, effects=effects), noise_std=1.0
    ).columns.all()


EVEN = [[1 / 2] * 2, [1 / 7] * 7]
UNEVEN = [[0.45, 0.45] + [0.0125] * 8, [0.49, 0.49] + [0.001] * 20, [0.5, 0.499, 0.001]]


@pytest.mark.parametrize("width", [4, 16, 60])
@pytest.mark.parametrize("chances", EVEN + UNEVEN)
def test_selection_does_not_mistake_chance_for_signal(width: int, chances: list[float]) -> None:
    rng = np.random.default_rng(2)
    labels = np.eye(len(chances))[rng.choice(len(chances), TRAIN, p=chances)]
    residuals = labels - labels.mean(axis=0)
    z_scores = [
        select_columns(residuals, rng.normal(size=(TRAIN, width)), noise_std=1.0).explained.z_score
        for _ in range(200)
    ]
    assert np.mean(np.array(z_scores) > 2.5) <= 0.05


def test_selection_does_not_mistake_chance_for_signal_where_labels_follow_the_degree() -> None:
    """Nodes of high degree have larger sums and are more often positive; sums are noise."""
    rng = np.random.default_rng(5)
    z_scores = []
    for _ in range(100):
        degrees = np.minimum(rng.pareto(1.5, TRAIN) + 1, 200)
        labels = np.eye(2)[(rng.random(TRAIN) < np.minimum(degrees / 100, 0.9)).astype(np.int64)]
        sums = rng.normal(size=(TRAIN, 8)) * np.sqrt(degrees)[:, None]
        found = select_columns(labels - labels.mean(axis=0), sums, noise_std=0.0)
        z_scores.append(found.explained.z_score)
    assert np.mean(np.array(z_scores) > 2.5) <= 0.1


def test_one_hub_does_not_hide_an_informative_column() -> None:
    rng = np.random.default_rng(6)
    residuals = class_residuals(rng, 2)
    effects = np.zeros(20)
    effects[3] = 0.6
    sums = received_sums(rng, residuals, width=20, effects=effects)
    sums[0] = 170.0
    assert column_statistics(residuals, sums)[3] > 15


def test_statistics_of_noise_follow_a_chi_squared_distribution() -> None:
    rng = np.random.default_rng(3)
    residuals = class_residuals(rng, 4)
    found = column_statistics(residuals, rng.normal(size=(TRAIN, 500)))
    assert found.mean() == pytest.approx(3, rel=0.1)  # chi^2 with (classes - 1) degrees of freedom
    assert found.var() == pytest.approx(6, rel=0.3)


def test_a_constant_column_has_no_evidence() -> None:
    rng = np.random.default_rng(4)
    residuals = class_residuals(rng, 2)
    assert column_statistics(residuals, np.ones((TRAIN, 2))).max() < 1e-6
