"""What explains is found, chance is what it is said to be, and less noise can be reckoned with."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.method.certified.evidence import explained_share, residual_labels


def one_hot(labels: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]


def test_what_explains_is_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    heard = rng.normal(size=(4000, 6))
    labels = (heard[:, 2] + 2 * rng.normal(size=4000) > 0).astype(np.int64)
    residuals = residual_labels(one_hot(labels), rng.normal(size=(4000, 3)).astype(np.float32))
    found = explained_share(residuals, heard, noise_std=1.0)
    assert found.share == pytest.approx(0.13, abs=0.03)
    assert np.abs(found.coefficients[:, 1]).argmax() == 2
    assert found.coefficients[2, 1] > 0 > found.coefficients[2, 0]


def test_chance_is_what_it_is_said_to_be() -> None:
    rng = np.random.default_rng(1)
    residuals = one_hot(rng.integers(0, 4, 500)).astype(np.float64)
    found = [
        explained_share(residuals, rng.normal(size=(500, 8)), noise_std=1.0) for _ in range(300)
    ]
    shares = np.array([each.share for each in found])
    assert abs(shares.mean()) < 0.1 * found[0].null_std
    assert shares.std() == pytest.approx(found[0].null_std, rel=0.2)
    assert (shares > 2.5 * found[0].null_std).mean() <= 0.01


def test_what_nodes_know_of_themselves_is_not_counted_again() -> None:
    rng = np.random.default_rng(2)
    own = rng.normal(size=(3000, 2)).astype(np.float32)
    labels = one_hot((own[:, 0] > 0).astype(np.int64))
    heard = own[:, :1] + 0.5 * rng.normal(size=(3000, 1))  # neighbours are like the node itself
    blunt = explained_share(labels - labels.mean(axis=0, dtype=np.float64), heard, noise_std=1.0)
    fair = explained_share(residual_labels(labels, own), heard, noise_std=1.0)
    assert blunt.share > 0.3
    assert fair.share < 0.01


def test_a_few_hubs_do_not_hide_what_the_others_hear() -> None:
    rng = np.random.default_rng(3)
    heard = rng.normal(size=(4000, 1))
    residuals = (heard + rng.normal(size=(4000, 1))) @ np.array([[1.0, -1.0]])
    heard[rng.integers(0, 4000, 20)] *= 1000
    assert explained_share(residuals, heard, noise_std=1.0).share > 0.4


def test_columns_that_say_nothing_at_all_are_no_trouble() -> None:
    residuals = one_hot(np.arange(100) % 2).astype(np.float64)
    found = explained_share(residuals, np.zeros((100, 3)), noise_std=0.0)
    assert np.isfinite(found.coefficients).all()
    assert abs(found.share) < 0.05
    same = explained_share(
        np.zeros((100, 2)), np.random.default_rng(0).normal(size=(100, 3)), noise_std=1.0
    )
    assert same.share == 0


@pytest.mark.parametrize("width", [2, 30, 70])
def test_chance_is_right_with_few_nodes_too(width: int) -> None:
    rng = np.random.default_rng(6)
    residuals = one_hot(rng.integers(0, 2, 100)).astype(np.float64)
    found = [
        explained_share(residuals, rng.normal(size=(100, width)), noise_std=1.0) for _ in range(300)
    ]
    shares = np.array([each.share for each in found])
    assert shares.std() == pytest.approx(found[0].null_std, rel=0.2)


def test_a_part_of_no_length_explains_nothing() -> None:
    heard = np.random.default_rng(7).normal(size=(500, 1))
    for noise_std in (0.0, 1.0):
        found = explained_share(heard @ np.array([[1.0, -1.0]]), heard, noise_std=noise_std)
        assert found.gain(0.0) == 0


@pytest.mark.parametrize("noise_std", [1.0, 3.0])
def test_what_less_noise_would_explain_is_foretold(noise_std: float) -> None:
    rng = np.random.default_rng(4)
    signal = rng.normal(size=(40_000, 2))
    residuals = signal @ np.array([[1.0, -1.0], [0.5, -0.5]]) + rng.normal(size=(40_000, 1))

    def heard(noise: float) -> NDArray[np.float64]:
        return signal + noise * rng.normal(size=signal.shape)

    found = explained_share(residuals, heard(noise_std), noise_std=noise_std)
    less = explained_share(residuals, heard(0.5), noise_std=0.5)
    forecast = found.share * found.gain((noise_std / 0.5) ** 2)
    assert forecast == pytest.approx(less.share, rel=0.1)


def test_without_noise_there_is_nothing_to_gain() -> None:
    heard = np.random.default_rng(5).normal(size=(500, 1))
    found = explained_share(heard @ np.array([[1.0, -1.0]]), heard, noise_std=0.0)
    assert found.signal == math.inf
    assert found.gain(5.0) == 1
