"""Labels that are classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.nodes import Nodes
from vesper.api.targets import VALIDATION_SHARE, refuse_alike, refuse_missing
from vesper.errors import InputError, first_three
from vesper.report.judged import JudgedClasses

LARGEST = 2.0**53
"""From here on neighbouring whole numbers are one decimal number."""


class Classes:
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
            huge = np.abs(values) >= LARGEST
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

    def set_apart(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Pick a fifth of each class, at least one where there are two."""
        picks = np.random.default_rng([seed, VALIDATION_SHARE])
        apart = np.zeros(len(labels), dtype=bool)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        for code, count in enumerate(counts):
            members = np.flatnonzero(codes == code)
            wanted = max(int(count) // VALIDATION_SHARE, int(count > 1))
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

    def judged(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> JudgedClasses:
        """Hold probabilities against classes; refuse classes that training did not see."""
        known = np.isin(labels, distinct)
        if not known.all():
            strange = zip(labels[~known].tolist(), nodes[~known].tolist(), strict=True)
            raise InputError(
                f"labels: {int((~known).sum())} labels are of classes that training did not see "
                f"({first_three(f'{value} of node {node}' for value, node in strange)}); "
                f"leave these nodes out"
            )
        return JudgedClasses(
            split=split,
            classes=self.names(distinct),
            labels=np.searchsorted(distinct, labels).astype(np.int64),
            probabilities=predicted,
        )
