"""What labels are, as a user gives them: classes, or numbers."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.api.nodes import Nodes
from vesper.errors import InputError, first_three
from vesper.model.objective import Label
from vesper.report.judged import Judged

VALIDATION_SHARE = 5
"""One in so many training nodes is kept for validation when none are given."""


class Targets(Protocol):
    """How labels are read, and held against what is predicted."""

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes."""

    def read(self, values: NDArray[Any], nodes: Nodes) -> NDArray[Any]:
        """Bring labels of these nodes to one form; refuse those that have none."""

    def set_apart(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Pick a fifth for validation."""

    def refuse_few(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], *, num_train: int
    ) -> None:
        """Refuse labels that are all the same; training rows come first."""

    def names(self, distinct: NDArray[Any]) -> tuple[Label, ...]:
        """Give distinct labels as parties hold them."""

    def judged(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> Judged:
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
