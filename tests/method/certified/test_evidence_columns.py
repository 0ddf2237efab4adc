"""Few columns that tell are found among many; where all tell, or none, all are taken."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.method.certified.evidence import column_statistics, select_columns

Exact = NDArray[np.float64]
TRAIN = 2000


def rest_of_classes(rng: np.random.Generator, num_classes: int) -> Exact:
    labels = np.eye(num_classes)[rng.integers(0, num_classes, TRAIN)]
    return np.asarray(labels - labels.mean(axis=0))


def heard(rng: np.random.Generator, residuals: Exact, *, width: int, says: Exact) -> Exact:
    """Noise of size 1, and in column j says[j] times the first class."""
    return np.asarray(rng.normal(size=(TRAIN, width)) + residuals[:, :1] * says)


@pytest.mark.parametrize("num_classes", [2, 5])
def test_one_column_that_tells_is_found_among_forty(num_classes: int) -> None:
    rng = np.random.default_rng(0)
    residuals = rest_of_classes(rng, num_classes)
    says = np.zeros(40)
    says[7] = 0.6
    found = select_columns(residuals, heard(rng, residuals, width=40, says=says), noise_std=1.0)
    assert np.flatnonzero(found.columns).tolist() == [7]
    assert found.penalty > 0
    assert found.explained.z_score > 2.5
    assert found.coefficients.shape == (40, num_classes)
    assert np.flatnonzero(found.coefficients[:, 0]).tolist() == [7]
    assert found.coefficients[7, 0] > 0


def test_all_columns_are_taken_where_all_tell_a_little() -> None:
    rng = np.random.default_rng(1)
    residuals = rest_of_classes(rng, 2)
    found = select_columns(
        residuals, heard(rng, residuals, width=40, says=np.full(40, 0.08)), noise_std=1.0
    )
    assert found.columns.all()
    assert found.penalty == 0
    assert found.explained.z_score > 2.5


@pytest.mark.parametrize("seed", range(4))
def test_the_louder_of_columns_that_all_tell_are_not_taken_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    residuals = rest_of_classes(rng, 2)
    says = np.r_[np.full(4, 0.4), np.full(12, 0.1)]
    assert select_columns(
        residuals, heard(rng, residuals, width=16, says=says), noise_std=1.0
    ).columns.all()


EVEN = [[1 / 2] * 2, [1 / 7] * 7]
UNEVEN = [[0.45, 0.45] + [0.0125] * 8, [0.49, 0.49] + [0.001] * 20, [0.5, 0.499, 0.001]]


@pytest.mark.parametrize("width", [4, 16, 60])
@pytest.mark.parametrize("chances", EVEN + UNEVEN)
def test_choosing_does_not_make_something_of_chance(width: int, chances: list[float]) -> None:
    rng = np.random.default_rng(2)
    labels = np.eye(len(chances))[rng.choice(len(chances), TRAIN, p=chances)]
    residuals = labels - labels.mean(axis=0)
    beyond = [
        select_columns(residuals, rng.normal(size=(TRAIN, width)), noise_std=1.0).explained.z_score
        for _ in range(200)
    ]
    assert np.mean(np.array(beyond) > 2.5) <= 0.05


def test_nor_where_labels_follow_the_degree() -> None:
    """Who hears many is heard loudly and more often positive; what is heard says nothing."""
    rng = np.random.default_rng(5)
    beyond = []
    for _ in range(100):
        degrees = np.minimum(rng.pareto(1.5, TRAIN) + 1, 200)
        labels = np.eye(2)[(rng.random(TRAIN) < np.minimum(degrees / 100, 0.9)).astype(np.int64)]
        said = rng.normal(size=(TRAIN, 8)) * np.sqrt(degrees)[:, None]
        found = select_columns(labels - labels.mean(axis=0), said, noise_std=0.0)
        beyond.append(found.explained.z_score)
    assert np.mean(np.array(beyond) > 2.5) <= 0.1


def test_one_hub_does_not_hide_a_column_that_tells() -> None:
    rng = np.random.default_rng(6)
    residuals = rest_of_classes(rng, 2)
    says = np.zeros(20)
    says[3] = 0.6
    said = heard(rng, residuals, width=20, says=says)
    said[0] = 170.0
    assert column_statistics(residuals, said)[3] > 15


def test_statistics_are_those_of_chance_where_nothing_tells() -> None:
    rng = np.random.default_rng(3)
    residuals = rest_of_classes(rng, 4)
    found = column_statistics(residuals, rng.normal(size=(TRAIN, 500)))
    assert found.mean() == pytest.approx(3, rel=0.1)  # chi^2 of as many as classes are free
    assert found.var() == pytest.approx(6, rel=0.3)


def test_a_column_that_is_constant_tells_nothing() -> None:
    rng = np.random.default_rng(4)
    residuals = rest_of_classes(rng, 2)
    assert column_statistics(residuals, np.ones((TRAIN, 2))).max() < 1e-6
