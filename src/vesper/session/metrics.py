"""Quality of predictions against labels from a table, by the metric of the run.

| labels | metric, in percent |
| --- | --- |
| two classes | area under the ROC curve |
| more classes | accuracy |
| numbers | share of variance explained; Spearman's rho for a ranking |
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.model.evaluation import Calibration, evaluate
from vesper.model.objective import Label
from vesper.model.regression import r2, spearman

SMALLEST = np.finfo(np.float64).tiny


def evaluate_predictions(
    predicted: NDArray[np.float64],
    truth: Sequence[Label],
    calibration: Calibration,
    *,
    task: str,
    path: Path,
) -> float:
    """Evaluate predictions against labels, in percent.

    Args:
        predicted: (nodes, columns), as `calibration` returns them.
        truth: label of each node.
        calibration: calibration of the run, which has its classes.
        task: task in the run's settings.
        path: table of the labels, for messages.

    Raises:
        InputError: a label is not a class of the run, or all labels are equal.
    """
    labels = metric_targets(truth, calibration.classes, path=path)
    if calibration.classes:
        return evaluate(np.log(np.maximum(predicted, SMALLEST)), labels.astype(np.int64))
    return 100 * (spearman if task == "ranking" else r2)(predicted[:, 0], labels)


def metric_targets(
    truth: Sequence[Label], classes: Sequence[Label], *, path: Path
) -> NDArray[np.float64]:
    """Convert labels to numbers: positions in `classes`, or the labels themselves if it is empty.

    Raises:
        InputError: a label is not a class, or no metric can be computed.
    """
    if not classes:
        numbers = np.array(truth, dtype=np.float64)
    else:
        codes = {str(name): code for code, name in enumerate(classes)}
        unknown = sorted({str(label) for label in truth} - set(codes))
        if unknown:
            raise InputError(
                f"{path}, column label: expected the {len(codes)} classes of training, found "
                f"{len(unknown)} others ({first_three(unknown)})"
            )
        numbers = np.array([codes[str(label)] for label in truth], dtype=np.float64)
    if len(classes) <= 2 and len(np.unique(numbers)) < 2:
        raise InputError(
            f"{path}, column label: expected at least two different labels among the evaluated "
            f"nodes, found one; no metric can be computed on them"
        )
    return numbers
