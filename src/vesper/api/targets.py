"""What labels are, as a user gives them: classes, or numbers.

Labels that are classes.

Labels that are numbers: to be predicted, or to be put in order.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.api.node_ids import Nodes
from vesper.errors import InputError, first_three
from vesper.model.objective import Label
from vesper.report.contents import ClassEvaluation, Evaluation, NumberEvaluation

VALIDATION_ONE_IN = 5
"""One in so many training nodes is kept for validation when none are given."""


class Targets(Protocol):
    """How labels are read, and held against what is predicted."""

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes."""

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
        """Bring labels of these nodes to one form; refuse those that have none."""

    def split_validation(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Pick a fifth for validation."""

    def refuse_few(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], *, num_train: int
    ) -> None:
        """Refuse labels that are all the same; training rows come first."""

    def names(self, distinct: NDArray[Any]) -> tuple[Label, ...]:
        """Give distinct labels as parties hold them."""

    def evaluate(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> Evaluation:
        """Hold predictions against labels; `distinct` are those of training."""


def refuse_missing(values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
    """Refuse missing labels; give the others without objects."""
    if values.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in values.tolist()], dtype=bool)
    elif values.dtype.kind == "f":
        missing = ~np.isfinite(values)
    else:
        missing = np.zeros(len(values), dtype=bool)
    if missing.any():
        raise InputError(
            f"labels: {int(missing.sum())} labels are missing, NaN or infinite "
            f"({first_three(f'node {node}' for node in nodes[missing])}); leave these nodes out"
        )
    return _of_one_kind(values) if values.dtype.kind == "O" else values


def _is_missing(value: Any) -> bool:
    """None, NaN, or `pandas.NA`, which is not even unequal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # neither true nor false: NA, or an array
        return True


def _of_one_kind(values: NDArray[Any]) -> NDArray[Any]:
    """Refuse text beside numbers, which would become text too."""
    texts = [isinstance(value, str) for value in values.tolist()]
    if any(texts) and not all(texts):
        text, number = values[texts.index(True)], values[texts.index(False)]
        raise InputError(
            f"labels: expected text or numbers, got both ({text!r}, {number!r}); write all as text"
        )
    return np.array(values.tolist())


def refuse_alike(codes: NDArray[np.int64], *, num_train: int, expected: str, remedy: str) -> None:
    """Refuse labels that are all the same in training or validation; training rows come first."""
    for what, part in (("train", codes[:num_train]), ("validation", codes[num_train:])):
        different = len(np.unique(part))
        if different < 2:
            raise InputError(f"{what}: expected nodes {expected}, got {different}; {remedy}")


LARGEST_EXACT_INTEGER = 2.0**53
"""From here on neighbouring whole numbers are one decimal number."""


class ClassTargets:
    """Whole numbers, booleans or text."""

    has_classes = True

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
        """Refuse missing ones and decimals."""
        values = refuse_missing(values, nodes)
        if values.dtype.kind == "f":
            decimal = values != np.round(values)
            if decimal.any():
                raise InputError(
                    f"labels: expected classes, {int(decimal.sum())} labels have decimals "
                    f"({first_three(values[decimal])}); give each node a class, or predict numbers "
                    f"with VesperRegressor"
                )
            huge = np.abs(values) >= LARGEST_EXACT_INTEGER
            if huge.any():
                raise InputError(
                    f"labels: expected classes, {int(huge.sum())} labels are no whole numbers that "
                    f"can be told apart ({first_three(values[huge])}); give each class a name"
                )
            values = values.astype(np.int64)
        if values.ndim != 1 or values.dtype.kind not in "iubU":
            raise InputError(
                f"labels: expected whole numbers or text, got {values.dtype} of shape "
                f"{values.shape}"
            )
        return values

    def split_validation(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Pick a fifth of each class, at least one where there are two."""
        picks = np.random.default_rng([seed, VALIDATION_ONE_IN])
        apart = np.zeros(len(labels), dtype=bool)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        for code, count in enumerate(counts):
            members = np.flatnonzero(codes == code)
            wanted = max(int(count) // VALIDATION_ONE_IN, int(count > 1))
            apart[picks.choice(members, size=wanted, replace=False)] = True
        return apart

    def refuse_few(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], *, num_train: int
    ) -> None:
        """Refuse fewer than two classes in training or validation."""
        if len(distinct) < 2:
            raise InputError(
                f"labels: expected at least two classes among train and validation, got "
                f"{len(distinct)} ({first_three(distinct)})"
            )
        refuse_alike(
            codes,
            num_train=num_train,
            expected="of at least two classes",
            remedy="give validation=... with nodes of every class",
        )

    def names(self, distinct: NDArray[Any]) -> tuple[str, ...]:
        """As text."""
        return tuple(str(value) for value in distinct.tolist())

    def evaluate(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> ClassEvaluation:
        """Hold probabilities against classes; refuse classes that training did not see."""
        known = np.isin(labels, distinct)
        if not known.all():
            strange = zip(labels[~known].tolist(), nodes[~known].tolist(), strict=True)
            raise InputError(
                f"labels: {int((~known).sum())} labels are of classes that training did not see "
                f"({first_three(f'{value} of node {node}' for value, node in strange)}); "
                f"leave these nodes out"
            )
        return ClassEvaluation(
            split=split,
            classes=self.names(distinct),
            labels=np.searchsorted(distinct, labels).astype(np.int64),
            probabilities=predicted,
        )


@dataclass(frozen=True)
class NumberTargets:
    """Whole or not.

    Args:
        metric: by which they are judged.
    """

    metric: str

    @property
    def has_classes(self) -> bool:
        """They are none."""
        return False

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[np.float64]:
        """Refuse missing ones and text."""
        values = refuse_missing(values, nodes)
        if values.ndim != 1 or values.dtype.kind not in "iubf":
            raise InputError(
                f"labels: expected numbers, got {values.dtype} of shape {values.shape}; classes "
                f"are learned by Vesper"
            )
        return values.astype(np.float64)

    def split_validation(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Pick one of any five that follow one another in order; of two to four in all, one."""
        picks = np.random.default_rng([seed, VALIDATION_ONE_IN])
        order, apart = np.argsort(labels, kind="stable"), np.zeros(len(labels), dtype=bool)
        for start in range(0, len(order), VALIDATION_ONE_IN):
            few = order[start : start + VALIDATION_ONE_IN]
            if len(few) == VALIDATION_ONE_IN or (start == 0 and len(few) > 1):
                apart[picks.choice(few)] = True
        return apart

    def refuse_few(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], *, num_train: int
    ) -> None:
        """Refuse numbers that are all the same in training or validation."""
        refuse_alike(
            codes,
            num_train=num_train,
            expected="with at least two different labels",
            remedy="nothing can be learned or judged by it",
        )

    def names(self, distinct: NDArray[Any]) -> tuple[float, ...]:
        """As they are."""
        return tuple(distinct.tolist())

    def evaluate(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> NumberEvaluation:
        """Hold numbers against numbers."""
        return NumberEvaluation(split=split, labels=labels, predicted=predicted, name=self.metric)
