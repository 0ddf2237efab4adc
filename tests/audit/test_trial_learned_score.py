"""The learned score against the best possible score."""

import numpy as np
from numpy.typing import NDArray

from vesper.audit.trial import fit_discriminant
from vesper.model.evaluation import roc_auc


def draw_rows(
    runs: int, shift: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((2, runs, 4)) * np.array([1.0, 1.0, 5.0, 0.1])
    return noise[0] + np.array([shift, 0.0, 3.0, 0.0]), noise[1] + np.array([0.0, 0.0, 3.0, 0.0])


def test_the_direction_and_the_midpoint_are_found() -> None:
    score = fit_discriminant(*draw_rows(4000, 2.0, 0))
    assert np.abs(score.direction[0]) > 10 * np.abs(score.direction[[1, 2]]).max()
    with_edge, without = draw_rows(4000, 2.0, 1)
    detected = (score.score(with_edge) > score.middle).mean()
    false_alarms = (score.score(without) > score.middle).mean()
    assert 0.82 < detected < 0.86  # Phi(1) = 0.841
    assert 0.14 < false_alarms < 0.18


def test_noise_alone_is_not_learned() -> None:
    score = fit_discriminant(*draw_rows(100, 0.0, 0))
    with_edge, without = draw_rows(2000, 0.0, 1)
    scores = np.concatenate([score.score(with_edge), score.score(without)])
    assert abs(roc_auc(scores, np.repeat([1, 0], 2000)) - 0.5) < 0.04


def test_constant_rows_give_a_finite_direction() -> None:
    assert np.isfinite(fit_discriminant(np.ones((5, 3)), np.ones((5, 3))).direction).all()
