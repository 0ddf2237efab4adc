"""Targets: how labels are read, split and evaluated, as classes or as numbers."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.api.node_ids import Nodes
from vesper.errors import InputError, first_three
from vesper.model.objective import Label
from vesper.report.contents import ClassEvaluation, Evaluation, NumberEvaluation

VALIDATION_ONE_IN = 5
"""One in this many training nodes is held out when no validation nodes are given."""


class Targets(Protocol):
    """Kind of labels: how they are read and compared with predictions."""

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes."""

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
        """Convert labels of these nodes to one form; refuse missing ones."""

    def split_validation(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Choose a fifth for validation, as a mask."""

    def refuse_few(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], *, num_train: int
    ) -> None:
        """Refuse labels that are all equal; training rows come first."""

    def names(self, distinct: NDArray[Any]) -> tuple[Label, ...]:
        """Return distinct labels in the form that parties hold."""

    def evaluate(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> Evaluation:
        """Compare predictions with labels; `distinct` are the distinct labels of training."""


def refuse_missing(values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
    """Refuse missing labels; convert object arrays to arrays of one type."""
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
    """Return whether it is None, NaN or `pandas.NA`, which is not even unequal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # neither true nor false: NA or an array
        return True


def _of_one_kind(values: NDArray[Any]) -> NDArray[Any]:
    """Refuse a mix of text and numbers: the numbers would silently become text."""
    texts = [isinstance(value, str) for value in values.tolist()]
    if any(texts) and not all(texts):
        text, number = values[texts.index(True)], values[texts.index(False)]
        raise InputError(
            f"labels: expected text or numbers, got both ({text!r}, {number!r}); convert all to "
            f"text"
        )
    return np.array(values.tolist())


def refuse_alike(codes: NDArray[np.int64], *, num_train: int, expected: str, remedy: str) -> None:
    """Refuse labels that are all equal in training or validation; training rows come first."""
    for what, part in (("train", codes[:num_train]), ("validation", codes[num_train:])):
        different = len(np.unique(part))
        if different < 2:
            raise InputError(f"{what}: expected nodes {expected}, got {different}; {remedy}")


LARGEST_EXACT_INTEGER = 2.0**53
"""From here on, floats no longer represent every whole number."""


class ClassTargets:
    """Labels that are classes: whole numbers, booleans or text."""

    has_classes = True

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
        """Refuse missing labels and decimals."""
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
                    f"labels: expected classes, {int(huge.sum())} labels are too large to be exact "
                    f"whole numbers ({first_three(values[huge])}); name the classes with text"
                )
            values = values.astype(np.int64)
        if values.ndim != 1 or values.dtype.kind not in "iubU":
            raise InputError(
                f"labels: expected whole numbers or text, got {values.dtype} of shape "
                f"{values.shape}"
            )
        return values

    def split_validation(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Choose a fifth of each class, and at least one of each class with two nodes or more."""
        rng = np.random.default_rng([seed, VALIDATION_ONE_IN])
        held_out = np.zeros(len(labels), dtype=bool)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        for code, count in enumerate(counts):
            members = np.flatnonzero(codes == code)
            num_held_out = max(int(count) // VALIDATION_ONE_IN, int(count > 1))
            held_out[rng.choice(members, size=num_held_out, replace=False)] = True
        return held_out

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
        """Return them as text."""
        return tuple(str(value) for value in distinct.tolist())

    def evaluate(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> ClassEvaluation:
        """Compare probabilities with classes; refuse classes not seen in training."""
        known = np.isin(labels, distinct)
        if not known.all():
            unknown = zip(labels[~known].tolist(), nodes[~known].tolist(), strict=True)
            raise InputError(
                f"labels: {int((~known).sum())} labels belong to classes not seen in training "
                f"({first_three(f'{value} of node {node}' for value, node in unknown)}); "
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
    """Labels that are numbers, to be predicted or ranked.

    Args:
        metric: metric of the evaluation.
    """

    metric: str

    @property
    def has_classes(self) -> bool:
        """Return False: numbers are not classes."""
        return False

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[np.float64]:
        """Refuse missing labels and text."""
        values = refuse_missing(values, nodes)
        if values.ndim != 1 or values.dtype.kind not in "iubf":
            raise InputError(
                f"labels: expected numbers, got {values.dtype} of shape {values.shape}; use Vesper "
                f"for classes"
            )
        return values.astype(np.float64)

    def split_validation(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Choose one of every five consecutive numbers in sorted order; one of two to four."""
        rng = np.random.default_rng([seed, VALIDATION_ONE_IN])
        order, held_out = np.argsort(labels, kind="stable"), np.zeros(len(labels), dtype=bool)
        for start in range(0, len(order), VALIDATION_ONE_IN):
            group = order[start : start + VALIDATION_ONE_IN]
            if len(group) == VALIDATION_ONE_IN or (start == 0 and len(group) > 1):
                held_out[rng.choice(group)] = True
        return held_out

    def refuse_few(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], *, num_train: int
    ) -> None:
        """Refuse numbers that are all equal in training or validation."""
        refuse_alike(
            codes,
            num_train=num_train,
            expected="with at least two different labels",
            remedy="one value leaves nothing to learn or to evaluate",
        )

    def names(self, distinct: NDArray[Any]) -> tuple[float, ...]:
        """Return them unchanged."""
        return tuple(distinct.tolist())

    def evaluate(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> NumberEvaluation:
        """Compare predicted numbers with labels."""
        return NumberEvaluation(split=split, labels=labels, predicted=predicted, name=self.metric)
