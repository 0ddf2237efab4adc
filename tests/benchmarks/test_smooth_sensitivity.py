"""The numbers of decision 0026: the smallest noise that smooth sensitivity could allow."""

import math

import numpy as np
import pytest
from benchmarks.smooth_sensitivity import (
    dilation_delta,
    gaussian_of_nissim,
    largest_beta,
    shares,
    smooth_sensitivity,
)

from vesper.privacy.accounting import participation
from vesper.privacy.accounting.budget import Budget


def test_delta_of_scaled_noise_equals_that_of_samples() -> None:
    beta, dimensions, epsilon = 0.4, 10, 0.5
    rng = np.random.default_rng(0)
    found = []
    for scale, sign in ((1.0, 1), (math.exp(beta), -1)):
        squares = scale**2 * (rng.standard_normal((400_000, dimensions)) ** 2).sum(axis=1)
        loss = sign * (dimensions * beta - (1 - math.exp(-2 * beta)) * squares / 2)
        found.append(np.maximum(1 - np.exp(epsilon - loss), 0).mean())
    expected = dilation_delta(beta, dimensions=dimensions, epsilon=epsilon)
    assert expected == pytest.approx(max(found), rel=0.02)


@pytest.mark.parametrize(("width", "expected"), [(6, 0.100), (16, 0.074), (64, 0.043)])
def test_the_largest_smoothing_parameter(width: int, expected: float) -> None:
    assert largest_beta(width) == pytest.approx(expected, abs=0.001)


def test_the_published_calibration_needs_more_than_five_times_the_noise() -> None:
    beta, multiplier = gaussian_of_nissim(16, rows=15_374, epsilon=4.0, delta=1e-6)
    exact = participation.noise_std_for(budget=Budget(epsilon=4.0, delta=1e-6), releases=1)
    # Even two nodes with all others as neighbours lower it by 12 % only.
    least = math.sqrt(2) * math.exp(-beta * 2 * 15_373)
    assert least == pytest.approx(0.88 * math.sqrt(2), abs=0.01)
    assert multiplier * math.sqrt(2) / exact == pytest.approx(5.6, abs=0.05)
    assert multiplier * least > 4.9 * exact


def test_a_row_with_small_sensitivity_shows_every_class() -> None:
    counts = np.array([[0, 40], [1, 40], [3, 40], [40, 40]])
    smooth = smooth_sensitivity(counts, 0.1)
    assert smooth.tolist() == pytest.approx([1, 1, math.exp(-0.2), math.exp(-3.9)])
    assert shares(counts, 0.1) == (0.5, 0.0)
