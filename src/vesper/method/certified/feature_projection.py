"""What features of a node vote for, where they tell its neighbours more than its class does.

votes[u] = where u lies along the components of features @ coefficients of the trial
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from vesper.method.base import Fitted
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import vote_rows
from vesper.model.principal_components import Along

ROWS = 1 << 14
"""Nodes at a time."""
VOTE_LENGTH = 0.5
"""Of the typical vote: those that are longer are cut to length 1, the others are in proportion."""
NUMBER_LENGTH = 1.0
"""The same for numbers, of which the size tells more."""


class Voting:
    """Components of features, and votes by them; both are fitted on the graph of training.

    Args:
        inputs: features.
        fitted: where what is fitted stands.
        length: of the longest vote that is not cut, of the typical one.
    """

    def __init__(self, inputs: Inputs, fitted: Fitted, *, length: float) -> None:
        self._inputs, self._fitted, self._length = inputs, fitted, length

    def along(self, fit: Callable[[], Tensor]) -> Along:
        """Where nodes lie along the components; a block at a time, for there may be no room."""
        return Along(self._inputs, self._fitted.once("components", fit))

    def votes(self, coefficients: Tensor) -> Tensor:
        """What features vote for: (num_nodes, num_classes), rows of norm at most 1."""
        components = self._fitted.find("components")
        assert components is not None  # the coefficients are of these
        along = Along(self._inputs, components)
        votes = torch.empty(self._inputs.num_nodes, coefficients.shape[1])
        for start in range(0, len(votes), ROWS):
            rows = slice(start, start + ROWS)
            votes[rows] = along(rows) @ coefficients.float()
        votes -= self._fitted.once("vote_centre", partial(torch.mean, votes, dim=0))
        typical = self._fitted.once("vote_size", lambda: votes.square().sum(dim=1).mean().sqrt())
        return vote_rows(votes, length=self._length * typical)


def vote_length(*, ordered: bool) -> float:
    """Of votes for classes, or for where a number lies in its order."""
    return NUMBER_LENGTH if ordered else VOTE_LENGTH
