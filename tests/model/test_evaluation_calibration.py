import numpy as np
import pytest

from vesper.model.evaluation import Calibration
from vesper.model.objective import Classification
from vesper.model.regression import Ranking, Regression

SCORES = np.random.default_rng(0).normal(size=(5, 3))


@pytest.mark.parametrize("balanced", [False, True])
def test_classes_are_predicted_as_by_the_objective(balanced: bool) -> None:
    objective = Classification(np.array([0, 0, 0, 1, 2]), 3, balanced=balanced)
    calibration = objective.calibration(("a", "b", "c"))
    assert calibration.columns == ["p_a", "p_b", "p_c"]
    assert np.array_equal(calibration.predict(SCORES), objective.predict(SCORES))
    assert calibration.predict(SCORES).sum(axis=1) == pytest.approx(np.ones(5))


@pytest.mark.parametrize("kind", [Regression, Ranking])
def test_numbers_are_predicted_as_by_the_objective(kind: type[Regression]) -> None:
    numbers = np.random.default_rng(1).normal(size=40)
    objective = kind(numbers, num_train=40)
    calibration = objective.calibration(tuple(numbers))
    scores = np.random.default_rng(2).normal(size=(5, 8))
    assert calibration == Calibration((), tuple(objective.centres.tolist()))
    assert np.array_equal(calibration.predict(scores)[:, 0], objective.predict(scores))
