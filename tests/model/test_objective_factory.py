import numpy as np
import pytest

from vesper.errors import InputError
from vesper.model.objective_factory import make_objective, num_outputs, task_of
from vesper.model.regression import BINS


@pytest.mark.parametrize(
    ("task", "classes", "metric", "outputs"),
    [
        ("auto", ("a", "b", "c"), "accuracy", 3),
        ("auto", (0, 1), "roc_auc", 2),
        ("classification", (3, 5), "roc_auc", 2),
        ("auto", (0.5, 1.5, 2.0), "r2", BINS),
        ("regression", (1, 2, 3), "r2", BINS),
        ("ranking", (1, 2, 3), "spearman", BINS),
    ],
)
def test_the_task_decides(
    task: str, classes: tuple[int | float | str, ...], metric: str, outputs: int
) -> None:
    labels = np.arange(30) % len(classes)
    objective = make_objective(task, classes, labels, num_train=20, balanced=False)
    assert (objective.metric, objective.outputs) == (metric, outputs)
    assert num_outputs(task, classes) == outputs
    assert objective.label_posteriors(np.arange(4)).shape == (4, outputs)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"task: expected 'classification' .* text, got 'ranking'"):
        task_of("ranking", ("high", "low"))
    with pytest.raises(InputError, match=r"task: expected 'regression' or 'ranking'"):
        task_of("classification", (0.5, 1.5))
    with pytest.raises(InputError, match="class_weights: expected 'none' for regression"):
        make_objective("regression", (1, 2), np.array([0, 1]), num_train=2, balanced=True)
