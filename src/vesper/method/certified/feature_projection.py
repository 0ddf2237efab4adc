"""What features of a node vote for, where they tell its neighbours more than its class does.

votes[u] = where u lies along the components of features @ coefficients of the trial
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from vesper.method.base import FittedConstants
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import projection_rows
from vesper.model.principal_components import ComponentProjection

ROWS_PER_BLOCK = 1 << 14
"""Nodes at a time."""
CLASS_PROJECTION_LENGTH = 0.5
"""Of the typical vote: those that are longer are cut to length 1, the others are in proportion."""
NUMBER_PROJECTION_LENGTH = 1.0
"""The same for numbers, of which the size tells more."""


class FeatureProjection:
    """Components of features, and votes by them; both are fitted on the graph of training.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        length: of the longest vote that is not cut, of the typical one.
    """

    def __init__(self, inputs: Inputs, constants: FittedConstants, *, length: float) -> None:
        self._inputs, self._constants, self._length = inputs, constants, length

    def component_projection(self, fit: Callable[[], Tensor]) -> ComponentProjection:
        """Where nodes lie along the components; a block at a time, for there may be no room."""
        return ComponentProjection(self._inputs, self._constants.fit_once("components", fit))

    def project(self, coefficients: Tensor) -> Tensor:
        """What features vote for: (num_nodes, num_classes), rows of norm at most 1."""
        components = self._constants.get("components")
        assert components is not None  # the coefficients are of these
        projection = ComponentProjection(self._inputs, components)
        projected = torch.empty(self._inputs.num_nodes, coefficients.shape[1])
        for start in range(0, len(projected), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            projected[rows] = projection(rows) @ coefficients.float()
        projected -= self._constants.fit_once(
            "projection_centre", partial(torch.mean, projected, dim=0)
        )
        size = self._constants.fit_once(
            "projection_size", lambda: projected.square().sum(dim=1).mean().sqrt()
        )
        return projection_rows(projected, length=self._length * size)


def projection_length(*, ordered: bool) -> float:
    """Of votes for classes, or for where a number lies in its order."""
    return NUMBER_PROJECTION_LENGTH if ordered else CLASS_PROJECTION_LENGTH
