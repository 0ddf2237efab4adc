"""Labels that no model can be learned from, or chosen by, are refused before a run begins."""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.settings import Config
from vesper.model.objectives import num_outputs, task_of
from vesper.model.responded_objective import refuse_other_tasks


def refuse_unusable_labels(config: Config, labels: LabelHoldings) -> None:
    """Refuse labels that cannot be trained on or chosen by."""
    for split in ("train", "val"):
        if not len(labels.rows(split)):
            remedy = {
                "train": "a model learns from these",
                "val": "a fifth of the training rows will do",
            }
            raise InputError(
                f"{labels.path}, column split: expected some rows with '{split}', found none; "
                f"{remedy[split]}"
            )
    if config.privacy.label_epsilon is None:
        if len(np.unique(labels.labels[labels.rows("train")])) < 2:
            raise InputError(
                f"{labels.path}, column label: expected at least two different labels among rows "
                f"with split 'train', found one; there is nothing to learn from them"
            )
        refuse_third_class(config, labels)
        refuse_equal_labels(config, labels, "val")
    else:  # whether the run begins is seen: it follows from responses (`label_responses`)
        task = task_of(config.run.task, labels.classes)
        refuse_other_tasks(task, balanced=config.run.class_weights == "balanced")


def refuse_third_class(config: Config, labels: LabelHoldings) -> None:
    """Refuse test labels that would make more than two classes of two.

    Metric and hops of two classes are other ones: test rows would decide on the model.
    """
    if task_of(config.run.task, labels.classes) != "classification":
        return
    is_test = labels.splits == SPLITS.index("test")
    known = np.unique(labels.labels[~is_test])
    strange = is_test & ~np.isin(labels.labels, known)
    if len(known) == 2 and strange.any():
        rows = np.flatnonzero(strange)
        named = first_three(
            f"'{labels.classes[labels.labels[row]]}' of id {id_}"
            for row, id_ in zip(rows[:3], labels.ids.take(rows[:3]), strict=True)
        )
        raise InputError(
            f"{labels.path}, column label: expected the two classes of rows with split 'train' and "
            f"'val', {len(rows)} rows with split 'test' have another label ({named}); leave these "
            f"rows out"
        )


def refuse_equal_labels(
    config: Config,
    labels: LabelHoldings,
    split: str,
    *,
    seen: NDArray[np.int64] | None = None,
) -> None:
    """Refuse a split on which two classes, or numbers, cannot be told apart by any model.

    Args:
        config: says what labels are.
        labels: the table.
        split: of the table.
        seen: what stands for the labels of the split, where it is not themselves.

    Raises:
        InputError: all labels of the split are equal, and the metric would not be a number.
    """
    has_accuracy = num_outputs(config.run.task, labels.classes) != 2 and (
        task_of(config.run.task, labels.classes) == "classification"
    )
    what, remedy = "labels", "no metric can be computed on them"
    if seen is None:
        seen = labels.labels[labels.rows(split)]
    else:
        what = "responses under label_epsilon"
        remedy += ": take more such rows, or a larger label_epsilon"
    if len(labels.classes) < 2 or (not has_accuracy and len(np.unique(seen)) < 2):
        raise InputError(
            f"{labels.path}, column label: expected at least two different {what} among the "
            f"{len(seen)} rows with split '{split}', found one; {remedy}"
        )
