"""What a method makes of nodes at the data party: the part that `DataParty` does not know.

Which nodes will be asked about, as far as the data party can know.

asked = test nodes of the roster;   all nodes that are not on it, where it names no test node

What asked nodes hear decides what is worth saying to them. A label party that holds no test label,
or an estimator that is fitted before anybody is asked about, will ask about the others.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Nodes = NDArray[np.int64]

NOBODY: Nodes = np.zeros(0, dtype=np.int64)


class Representation(Protocol):
    """Nodes to embeddings, in stages; whatever it learns from edges came through a door."""

    @property
    def module(self) -> nn.Module:
        """All weights at the data party."""

    def hear(self, nodes: Nodes, voices: NDArray[np.float32], asked: Nodes = NOBODY) -> None:
        """Take what the training nodes say instead of a guess: (num_train, num_classes), or none.

        `asked` are nodes that predictions are wanted for, where they are known beforehand.

        `voices` has no columns when the contract says that labels stay at the label party.
        """

    def begin_stage(self, stage: int) -> None:
        """Do what comes before a stage: freeze the one before, release, make new inputs."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Embed nodes for the label party: (B, width, depth)."""

    @property
    def draws(self) -> bool:
        """Whether a node is embedded otherwise each time, by chance."""

    def settle(self, stage: int) -> None:
        """Embed from now on for the decoder of this stage, which validation has chosen."""

    def remember(self) -> dict[str, NDArray[Any]]:
        """What `recall` needs beside weights, masks and releases."""

    def recall(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on as if nothing had happened since `remember`."""

    def fitted(self) -> dict[str, NDArray[Any]]:
        """What was fitted on the graph of training beside weights: scales, centres."""

    def keep_to(self, fitted: dict[str, NDArray[Any]]) -> None:
        """Fit nothing on this graph, use what was fitted on that of training; before stage 0."""


class Forgetful:
    """The part of a representation that remembers nothing beside weights, masks and releases.

    It fits nothing either, and its embeddings of the last stage hold those of the stages before,
    unless a subclass says so.
    """

    draws = False
    """It embeds a node the same way each time."""

    def settle(self, stage: int) -> None:
        """Need nothing."""

    def remember(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def recall(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Need nothing."""

    def fitted(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def keep_to(self, fitted: dict[str, NDArray[Any]]) -> None:
        """Have nothing that could be fitted."""


def asked_of(roster: Nodes, *, num_test: int, num_nodes: int) -> Nodes:
    """Give the nodes that predictions will be wanted for.

    Args:
        roster: the labelled nodes: training, validation, test.
        num_test: how many of these, at its end, are test nodes.
        num_nodes: of the graph, labelled or not.

    >>> asked_of(np.array([4, 0, 2]), num_test=1, num_nodes=6).tolist()
    [2]
    >>> asked_of(np.array([4, 0, 2]), num_test=0, num_nodes=6).tolist()
    [1, 3, 5]
    """
    if num_test:
        return roster[len(roster) - num_test :]
    is_other = np.ones(num_nodes, dtype=bool)
    is_other[roster] = False
    return np.flatnonzero(is_other)
