from pathlib import Path

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.model.evaluation import Calibration, metric_name_of
from vesper.session.metrics import evaluate_predictions

TWO = Calibration(classes=(0, 1), constants=(0.0, 0.0))
THREE = Calibration(classes=("a", "b", "c"), constants=(0.0,) * 3)
NUMBERS = Calibration(classes=(), constants=(0.0, 1.0))
HERE = Path("labels.csv")


def test_two_classes() -> None:
    predicted = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.0, 1.0]])
    assert evaluate_predictions(predicted, [0, 0, 1, 1], TWO, task="auto", path=HERE) == 75.0
    assert (
        evaluate_predictions(predicted, ["0", "0", "1", "1"], TWO, task="auto", path=HERE) == 75.0
    )
    assert metric_name_of(TWO, task="auto") == "roc_auc"


def test_more_classes_need_not_all_occur() -> None:
    predicted = np.array([[0.5, 0.4, 0.1], [0.2, 0.7, 0.1]])
    assert evaluate_predictions(predicted, ["a", "c"], THREE, task="auto", path=HERE) == 50.0
    assert metric_name_of(THREE, task="auto") == "accuracy"


def test_numbers() -> None:
    predicted = np.array([[1.0], [2.0], [4.0]])
    truth = [1.0, 2.0, 3.0]
    assert evaluate_predictions(predicted, truth, NUMBERS, task="auto", path=HERE) == 50.0
    assert evaluate_predictions(predicted, truth, NUMBERS, task="ranking", path=HERE) == 100.0
    assert metric_name_of(NUMBERS, task="regression") == "r2"
    assert metric_name_of(NUMBERS, task="ranking") == "spearman"


@pytest.mark.parametrize(
    ("truth", "message"),
    [([0, 2], "found 1 others (first 1: 2)"), ([1, 1], "at least two different labels")],
)
def test_labels_without_a_metric_are_refused(truth: list[int], message: str) -> None:
    with pytest.raises(InputError) as refused:
        evaluate_predictions(np.full((2, 2), 0.5), truth, TWO, task="auto", path=HERE)
    assert message in str(refused.value)
    assert "labels.csv" in str(refused.value)
