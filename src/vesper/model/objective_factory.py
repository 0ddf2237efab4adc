"""Choice of the objective, from the requested task and the labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vesper.errors import InputError, first_three
from vesper.model.noisy_labels import NoisyLabelClassification, refuse_other_tasks
from vesper.model.objective import Classification, Label, Objective, RowIndices
from vesper.model.regression import BINS, Ranking, Regression


def task_of(task: str, classes: Sequence[Label]) -> str:
    """Resolve `auto`: labels with decimals are a regression, all others are classes.

    >>> task_of("auto", (0.5, 1.25)), task_of("auto", (0, 1)), task_of("ranking", (1, 2))
    ('regression', 'classification', 'ranking')

    Raises:
        InputError: a numeric task with labels that are text, or classes with decimals.
    """
    has_decimals = any(isinstance(label, float) for label in classes)
    if task == "auto":
        return "regression" if has_decimals else "classification"
    if task == "classification" and has_decimals:
        raise InputError(
            f"task: expected 'regression' or 'ranking' for labels with decimals "
            f"({first_three(classes[:3])}), got 'classification'"
        )
    texts = [label for label in classes if isinstance(label, str)]
    if task != "classification" and texts:
        raise InputError(
            f"task: expected 'classification' for labels that are text, got '{task}' and "
            f"{len(texts)} such labels ({first_three(texts[:3])})"
        )
    return task


def num_outputs(task: str, classes: Sequence[Label]) -> int:
    """Return the number of scores per node: one per class, or one per bin."""
    return len(classes) if task_of(task, classes) == "classification" else BINS


@dataclass(frozen=True)
class LabelResponses:
    """Randomised responses to the labels of training and validation rows, in this order."""

    noisy_labels: RowIndices
    epsilon: float


def make_objective(
    task: str,
    classes: Sequence[Label],
    labels: RowIndices,
    *,
    num_train: int,
    balanced: bool,
    responses: LabelResponses | None = None,
) -> Objective:
    """Make the objective for labels given as positions in `classes`, training rows first."""
    resolved_task = task_of(task, classes)
    if responses is not None:
        refuse_other_tasks(resolved_task, balanced=balanced)
        return NoisyLabelClassification(
            labels,
            responses.noisy_labels,
            len(classes),
            num_train=num_train,
            epsilon=responses.epsilon,
        )
    if resolved_task == "classification":
        return Classification(labels, len(classes), num_train=num_train, balanced=balanced)
    if balanced:
        raise InputError(f"class_weights: expected 'none' for {resolved_task}, got 'balanced'")
    numbers = np.array(classes, dtype=np.float64)[labels]
    makers = {"regression": Regression, "ranking": Ranking}
    return makers[resolved_task](numbers, num_train=num_train)
