"""Labels that are numbers: to be predicted, or to be put in order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.nodes import Nodes
from vesper.api.targets import VALIDATION_SHARE, refuse_alike, refuse_missing
from vesper.errors import InputError
from vesper.report.judged import JudgedNumbers


@dataclass(frozen=True)
class Numbers:
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

    def set_apart(self, labels: NDArray[Any], *, seed: int) -> NDArray[np.bool_]:
        """Pick one of any five that follow one another in order; of two to four in all, one."""
        picks = np.random.default_rng([seed, VALIDATION_SHARE])
        order, apart = np.argsort(labels, kind="stable"), np.zeros(len(labels), dtype=bool)
        for start in range(0, len(order), VALIDATION_SHARE):
            few = order[start : start + VALIDATION_SHARE]
            if len(few) == VALIDATION_SHARE or (start == 0 and len(few) > 1):
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

    def judged(
        self,
        split: str,
        nodes: Nodes,
        labels: NDArray[Any],
        predicted: NDArray[np.float64],
        distinct: NDArray[Any],
    ) -> JudgedNumbers:
        """Hold numbers against numbers."""
        return JudgedNumbers(split=split, labels=labels, predicted=predicted, name=self.metric)
