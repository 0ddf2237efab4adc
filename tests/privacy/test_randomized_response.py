"""Claim LABEL-RR."""

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.randomized_response import (
    epsilon_of_keep,
    flip_probability,
    inverse_transition,
    keep_probability,
    transition,
)

mpmath: Any = importlib.import_module("mpmath")
mpmath.mp.dps = 60

EPSILONS = st.one_of(st.floats(1e-6, 1), st.floats(1, 60))
CLASSES = st.integers(2, 100)


@pytest.mark.parametrize(
    ("num_classes", "rounded"), [(2, [0.73, 0.88, 0.98]), (47, [0.06, 0.14, 0.54])]
)
def test_known_values(num_classes: int, rounded: list[float]) -> None:
    kept = [keep_probability(epsilon=e, num_classes=num_classes) for e in (1.0, 2.0, 4.0)]
    assert [round(keep, 2) for keep in kept] == rounded


@given(epsilon=EPSILONS, num_classes=CLASSES)
def test_the_ratio_never_exceeds_e_to_the_epsilon(epsilon: float, num_classes: int) -> None:
    keep = mpmath.mpf(keep_probability(epsilon=epsilon, num_classes=num_classes))
    flip = (1 - keep) / (num_classes - 1)  # what a sampler that compares with `keep` does
    assert flip > 0
    assert flip <= keep <= mpmath.exp(epsilon) * flip


@given(epsilon=st.floats(1e-3, 15), num_classes=CLASSES)
def test_there_and_back_is_on_the_safe_side(epsilon: float, num_classes: int) -> None:
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    back = epsilon_of_keep(keep=keep, num_classes=num_classes)
    exact = mpmath.log(mpmath.mpf(keep) * (num_classes - 1) / (1 - mpmath.mpf(keep)))
    assert exact <= back
    assert back == pytest.approx(epsilon, rel=1e-6)


@given(epsilon=st.floats(1e-3, 15), num_classes=st.integers(2, 12))
def test_more_keeping_is_caught(epsilon: float, num_classes: int) -> None:
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    more = keep + 0.01 * (1 - keep)
    assert epsilon_of_keep(keep=more, num_classes=num_classes) > epsilon


@given(epsilon=st.floats(0.05, 10), num_classes=st.integers(2, 50))
def test_the_inverse_undoes_the_response(epsilon: float, num_classes: int) -> None:
    forward = transition(epsilon=epsilon, num_classes=num_classes)
    np.testing.assert_allclose(forward.sum(axis=1), 1, rtol=1e-12)
    unbiased = forward @ inverse_transition(epsilon=epsilon, num_classes=num_classes)
    np.testing.assert_allclose(unbiased, np.eye(num_classes), atol=1e-9)


def test_the_diagonal_is_keep_and_the_rest_is_flip() -> None:
    forward = transition(epsilon=2.0, num_classes=3)
    assert forward[1, 1] == pytest.approx(keep_probability(epsilon=2.0, num_classes=3))
    assert forward[1, 2] == pytest.approx(flip_probability(epsilon=2.0, num_classes=3))


def test_always_keeping_is_no_privacy_and_cannot_be_planned() -> None:
    assert epsilon_of_keep(keep=1.0, num_classes=3) == math.inf
    assert epsilon_of_keep(keep=1 / 3, num_classes=3) < 1e-14
    for epsilon in (0.0, math.inf, math.nan):
        with pytest.raises(InputError, match="epsilon"):
            keep_probability(epsilon=epsilon, num_classes=3)
    with pytest.raises(InputError, match="num_classes"):
        keep_probability(epsilon=1.0, num_classes=1)
    with pytest.raises(InputError, match="keep"):
        epsilon_of_keep(keep=0.1, num_classes=3)
