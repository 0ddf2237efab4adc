"""Signal is measured, chance has the stated size, and the effect of less noise is forecast."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.method.certified.evidence import explained_share, residual_labels


def one_hot(labels: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]


def test_informative_columns_are_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    sums = rng.normal(size=(4000, 6))
    labels = (sums[:, 2] + 2 * rng.normal(size=4000) > 0).astype(np.int64)
    residuals = residual_labels(one_hot(labels), rng.normal(size=(4000, 3)).astype(np.float32))
    explained = explained_share(residuals, sums, noise_std=1.0)
    assert explained.share == pytest.approx(0.13, abs=0.03)
    assert np.abs(explained.coefficients[:, 1]).argmax() == 2
    assert explained.coefficients[2, 1] > 0 > explained.coefficients[2, 0]


def test_shares_of_noise_have_mean_zero_and_the_stated_deviation() -> None:
    rng = np.random.default_rng(1)
    residuals = one_hot(rng.integers(0, 4, 500)).astype(np.float64)
    measured = [
        explained_share(residuals, rng.normal(size=(500, 8)), noise_std=1.0) for _ in range(300)
    ]
    shares = np.array([each.share for each in measured])
    assert abs(shares.mean()) < 0.1 * measured[0].null_std
    assert shares.std() == pytest.approx(measured[0].null_std, rel=0.2)
    assert (shares > 2.5 * measured[0].null_std).mean() <= 0.01


def test_what_own_features_explain_is_not_counted_again() -> None:
    rng = np.random.default_rng(2)
    own = rng.normal(size=(3000, 2)).astype(np.float32)
    labels = one_hot((own[:, 0] > 0).astype(np.int64))
    sums = own[:, :1] + 0.5 * rng.normal(size=(3000, 1))  # neighbours resemble the node itself
    centred = labels - labels.mean(axis=0, dtype=np.float64)
    of_labels = explained_share(centred, sums, noise_std=1.0)
    of_residuals = explained_share(residual_labels(labels, own), sums, noise_std=1.0)
    assert of_labels.share > 0.3
    assert of_residuals.share < 0.01


def test_a_few_hubs_do_not_hide_the_signal_of_other_nodes() -> None:
    rng = np.random.default_rng(3)
    sums = rng.normal(size=(4000, 1))
    residuals = (sums + rng.normal(size=(4000, 1))) @ np.array([[1.0, -1.0]])
    sums[rng.integers(0, 4000, 20)] *= 1000
    assert explained_share(residuals, sums, noise_std=1.0).share > 0.4


def test_constant_columns_and_constant_labels_explain_nothing() -> None:
    residuals = one_hot(np.arange(100) % 2).astype(np.float64)
    explained = explained_share(residuals, np.zeros((100, 3)), noise_std=0.0)
    assert np.isfinite(explained.coefficients).all()
    assert abs(explained.share) < 0.05
    constant_labels = explained_share(
        np.zeros((100, 2)), np.random.default_rng(0).normal(size=(100, 3)), noise_std=1.0
    )
    assert constant_labels.share == 0


@pytest.mark.parametrize("width", [2, 30, 70])
def test_the_deviation_of_chance_is_right_with_few_nodes_too(width: int) -> None:
    rng = np.random.default_rng(6)
    residuals = one_hot(rng.integers(0, 2, 100)).astype(np.float64)
    measured = [
        explained_share(residuals, rng.normal(size=(100, width)), noise_std=1.0) for _ in range(300)
    ]
    shares = np.array([each.share for each in measured])
    assert shares.std() == pytest.approx(measured[0].null_std, rel=0.2)


def test_a_part_of_length_zero_explains_nothing() -> None:
    sums = np.random.default_rng(7).normal(size=(500, 1))
    for noise_std in (0.0, 1.0):
        explained = explained_share(sums @ np.array([[1.0, -1.0]]), sums, noise_std=noise_std)
        assert explained.gain(0.0) == 0


@pytest.mark.parametrize("noise_std", [1.0, 3.0])
def test_gain_forecasts_the_share_with_less_noise(noise_std: float) -> None:
    rng = np.random.default_rng(4)
    signal = rng.normal(size=(40_000, 2))
    residuals = signal @ np.array([[1.0, -1.0], [0.5, -0.5]]) + rng.normal(size=(40_000, 1))

    def sums_with(noise: float) -> NDArray[np.float64]:
        return signal + noise * rng.normal(size=signal.shape)

    explained = explained_share(residuals, sums_with(noise_std), noise_std=noise_std)
    less_noise = explained_share(residuals, sums_with(0.5), noise_std=0.5)
    forecast = explained.share * explained.gain((noise_std / 0.5) ** 2)
    assert forecast == pytest.approx(less_noise.share, rel=0.1)


def test_without_noise_there_is_no_gain() -> None:
    sums = np.random.default_rng(5).normal(size=(500, 1))
    explained = explained_share(sums @ np.array([[1.0, -1.0]]), sums, noise_std=0.0)
    assert explained.signal == math.inf
    assert explained.gain(5.0) == 1
