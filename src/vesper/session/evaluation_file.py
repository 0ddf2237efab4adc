"""Predictions on validation nodes, which the label party keeps for the curves of its report.

    evaluation.npz    predicted (nodes, classes), labels (nodes,), classes (classes,)

Ids are not in it. Nothing is written where labels are protected from the data party: reports are
shown to others, and curves would be about the labels themselves. Nor for numbers to predict.
"""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.files import read_arrays
from vesper.graph.labels import LabelHoldings
from vesper.method.settings import Config
from vesper.session.label_side import label_objective

EVALUATION_FILE = "evaluation.npz"


def write_evaluation(
    out: Path, config: Config, labels: LabelHoldings, scores: NDArray[np.float64]
) -> None:
    """Write the file into a run folder, if it may be written.

    Args:
        out: the run folder.
        config: settings of the run.
        labels: the label table.
        scores: of the chosen stage on validation nodes, in the order of the table.
    """
    calibration = label_objective(config, labels).calibration(labels.classes)
    rows = labels.rows("val")
    if config.privacy.label_epsilon is not None or not calibration.classes:
        return
    if len(scores) != len(rows):  # no epoch was better than none: there is no metric
        return
    np.savez(
        out / EVALUATION_FILE,
        allow_pickle=False,
        predicted=calibration.predict(scores),
        labels=labels.labels[rows],
        classes=np.array([str(name) for name in calibration.classes]),
    )


def read_evaluation(
    folder: Path,
) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[str, ...]] | None:
    """Read predicted probabilities, class numbers and names of classes; None if there is no file.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / EVALUATION_FILE
    if not path.is_file():
        return None
    try:
        arrays = read_arrays(path)
        predicted, labels, classes = (arrays[name] for name in ("predicted", "labels", "classes"))
        fits = predicted.shape == (len(labels), len(classes)) and np.isfinite(predicted).all()
        fits = fits and labels.dtype.kind == "i" and set(labels.tolist()) <= {*range(len(classes))}
    except (OSError, EOFError, BadZipFile, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); remove it, or train again") from None
    if not fits:
        raise InputError(
            f"{path}: expected a probability per node and class, found other numbers; remove it, "
            f"or train again"
        )
    return predicted, labels.astype(np.int64), tuple(map(str, classes.tolist()))
