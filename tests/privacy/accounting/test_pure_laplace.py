import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.privacy.accounting.pure import (
    CUMULATIVE_DEGREES_L1,
    DEGREE_HISTOGRAM_L1,
    laplace_epsilon_for,
    laplace_scale_for,
)


@given(l1_sensitivity=st.floats(0.1, 10), epsilon=st.floats(1e-3, 1e3))
def test_the_round_trip_is_on_the_safe_side(l1_sensitivity: float, epsilon: float) -> None:
    scale = laplace_scale_for(l1_sensitivity=l1_sensitivity, epsilon=epsilon)
    assert scale * epsilon >= l1_sensitivity
    back = laplace_epsilon_for(l1_sensitivity=l1_sensitivity, scale=scale)
    assert back == pytest.approx(epsilon, rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_density_ratio_is_within_epsilon_and_less_noise_is_caught(epsilon: float) -> None:
    scale = laplace_scale_for(l1_sensitivity=2.0, epsilon=epsilon)
    outputs = np.arange(-50, 51)

    def worst_loss(scale: float) -> float:
        # Two counts move by one each, as the cumulative degree counts do.
        return float(np.max(2 * (np.abs(outputs - 1) - np.abs(outputs)) / scale))

    assert worst_loss(scale) <= epsilon
    assert worst_loss(0.99 * scale) > epsilon


def degrees_of_all_pairs() -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Degrees in every graph on four nodes, with and without each of its edges."""
    possible = list(itertools.combinations(range(4), 2))
    pairs = []
    for bits in itertools.product([0, 1], repeat=len(possible)):
        chosen = [edge for edge, bit in zip(possible, bits, strict=True) if bit]
        full = np.bincount(np.array(chosen, dtype=np.int64).ravel(), minlength=4)
        for edge in chosen:
            less = full.copy()
            less[list(edge)] -= 1
            pairs.append((full, less))
    return pairs


def test_l1_sensitivities_on_all_graphs_with_four_nodes() -> None:
    def histogram(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(degrees, minlength=4)

    def cumulative(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([np.sum(degrees >= k) for k in range(1, 4)])

    def worst(counts: list[int]) -> int:
        return max(counts)

    pairs = degrees_of_all_pairs()
    plain = worst([int(np.abs(histogram(a) - histogram(b)).sum()) for a, b in pairs])
    summed = worst([int(np.abs(cumulative(a) - cumulative(b)).sum()) for a, b in pairs])
    assert plain == DEGREE_HISTOGRAM_L1
    assert summed == CUMULATIVE_DEGREES_L1


def test_no_noise_is_no_privacy_and_cannot_be_planned() -> None:
    assert laplace_epsilon_for(l1_sensitivity=2.0, scale=0.0) == math.inf
    for epsilon in (0.0, math.inf, math.nan, -1.0):
        with pytest.raises(InputError, match="epsilon"):
            laplace_scale_for(l1_sensitivity=2.0, epsilon=epsilon)
